"""Adds one step to the build: message classes and stubs from the repository's proto/ folder."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
PROTO_ROOT = HERE.parent.parent / "proto"
PROTOS = ["merope/v1/trajectory.proto", "merope/v1/generation.proto"]


class BuildWithStubs(build_py):
    def run(self) -> None:
        super().run()
        if not (PROTO_ROOT / PROTOS[0]).is_file():
            raise SystemExit(f"no {PROTOS[0]} in {PROTO_ROOT}: install from a clone of the repository")
        import grpc_tools
        from grpc_tools import protoc

        # An editable install takes the package from here, every other from the build folder.
        target = HERE if self.editable_mode else Path(self.build_lib)
        target.mkdir(parents=True, exist_ok=True)
        well_known = Path(grpc_tools.__file__).parent / "_proto"
        arguments = ["protoc", f"-I{PROTO_ROOT}", f"-I{well_known}"]
        arguments += [f"--python_out={target}", f"--pyi_out={target}", f"--grpc_python_out={target}", *PROTOS]
        if protoc.main(arguments) != 0:
            raise SystemExit("protoc failed")
        (target / "merope" / "v1" / "__init__.py").write_text("")


setup(cmdclass={"build_py": BuildWithStubs})
