"""`antiphon` as its next version may be: `python newer.py WORDS…` runs this one with formats whose numbers are one higher."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

MODULES = ("antiphon.fleet.membership", "antiphon.fleet.records.formats")
OURS, NEXT = b"\nFORMAT: Final = 1\n", b"\nFORMAT: Final = 2\n"


class NewerLoader(SourceFileLoader):
    """Loads a module with the next number."""

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        assert source.count(OURS) == 1, f"the format of {fullname} is another one now: change this file"
        return compile(source.replace(OURS, NEXT), self.path, "exec", dont_inherit=True)


class NewerFinder(MetaPathFinder):
    """Finds the modules that have numbers."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MODULES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = NewerLoader(fullname, spec.origin)
        return spec


if __name__ == "__main__":
    sys.meta_path.insert(0, NewerFinder())
    from antiphon.cli.main import main

    raise SystemExit(main())
