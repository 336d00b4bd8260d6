# LibTorch as imported targets: torch::cpu, and with MEROPE_TORCH_CUDA torch::cuda.
#
# The wheel's own find_package(Torch) asks for a CUDA toolkit of exactly its version even for CPU use, and its include/ also
# holds fmt 12 and protobuf headers that hide the system's. Hence imported libraries, and -idirafter, which searches the
# folder last.
set(MEROPE_TORCH_DIR ${CMAKE_SOURCE_DIR}/build/third_party/libtorch CACHE PATH "Folder with LibTorch's include/ and lib/")
if(NOT EXISTS ${MEROPE_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "no LibTorch in ${MEROPE_TORCH_DIR}: run cmake/bootstrap.sh, or name one with -DMEROPE_TORCH_DIR=")
endif()
set(MEROPE_TORCH_LINK_DIRS ${MEROPE_TORCH_DIR}/lib ${CMAKE_SOURCE_DIR}/build/third_party/cuda_runtime/lib
    CACHE STRING "Folders with the libraries that LibTorch itself needs (libcudart, libcupti, with CUDA also cuDNN and others)")

add_library(merope_torch_cpu INTERFACE)
add_library(torch::cpu ALIAS merope_torch_cpu)
target_compile_options(merope_torch_cpu INTERFACE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${MEROPE_TORCH_DIR}/include>)
target_link_libraries(merope_torch_cpu INTERFACE ${MEROPE_TORCH_DIR}/lib/libtorch_cpu.so ${MEROPE_TORCH_DIR}/lib/libc10.so)
# RPATH and not RUNPATH: only the former is searched for what LibTorch's libraries themselves need.
target_link_options(merope_torch_cpu INTERFACE -Wl,--disable-new-dtags)
foreach(dir ${MEROPE_TORCH_LINK_DIRS})
  target_link_options(merope_torch_cpu INTERFACE -Wl,-rpath-link,${dir} -Wl,-rpath,${dir})
endforeach()

if(MEROPE_TORCH_CUDA)
  if(NOT EXISTS ${MEROPE_TORCH_DIR}/lib/libtorch_cuda.so)
    message(FATAL_ERROR "MEROPE_TORCH_CUDA: no libtorch_cuda.so in ${MEROPE_TORCH_DIR}/lib (cmake/bootstrap.sh --cuda)")
  endif()
  # Nothing of ours calls into libtorch_cuda.so; it registers the CUDA backend when it is loaded, so it must stay linked.
  target_link_options(merope_torch_cpu INTERFACE
    -Wl,--no-as-needed ${MEROPE_TORCH_DIR}/lib/libtorch_cuda.so ${MEROPE_TORCH_DIR}/lib/libc10_cuda.so -Wl,--as-needed)
  target_compile_definitions(merope_torch_cpu INTERFACE MEROPE_TORCH_CUDA=1)
endif()
