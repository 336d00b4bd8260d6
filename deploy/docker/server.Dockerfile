# merope-server. Build from the repository root:
#   docker build -f deploy/docker/server.Dockerfile -t merope/server .
#
# The base is pinned by DEBIAN; name a digest (debian:12.11-slim@sha256:...) for builds that can be repeated byte by byte.
# Packages come from that Debian release alone.
ARG DEBIAN=debian:12-slim

FROM ${DEBIAN} AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      cmake g++ ninja-build pkg-config \
      libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libssl-dev libhiredis-dev \
      libavcodec-dev libavformat-dev libswscale-dev libavutil-dev \
      prometheus-cpp-dev libcivetweb-dev libspdlog-dev libfmt-dev libeigen3-dev nlohmann-json3-dev libcli11-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The server needs no LibTorch.
RUN cmake --preset release -DMEROPE_WORKER=OFF \
    && cmake --build build/release --target merope-server merope-cli \
    && cmake --install build/release --prefix /opt/merope --component merope-server \
    && cmake --install build/release --prefix /opt/merope --component merope-cli

FROM ${DEBIAN}
RUN apt-get update && apt-get install -y --no-install-recommends \
      libgrpc++1.51 libprotobuf32 libssl3 libhiredis0.14 libprometheus-cpp-core1.0 libcivetweb1 libspdlog1.10 libfmt9 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --no-create-home merope
COPY --from=build /opt/merope /opt/merope
ENV PATH=/opt/merope/bin:$PATH
USER 10001:10001
EXPOSE 50051 9464
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/merope/bin/merope-server"]
CMD ["--listen=0.0.0.0:50051", "--admin-host=0.0.0.0", "--admin-port=9464"]
