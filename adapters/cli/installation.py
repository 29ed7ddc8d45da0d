"""The installed library as ``toolgrammar doctor`` reports it: facts, and what is wrong with a remedy."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE = "toolgrammar"

#: Lowest version of Python that the library supports.
LOWEST_PYTHON = (3, 10)

#: Remedy of an installation whose modules are not those of this interpreter.
AGAIN = "reinstall the library: a wheel of your platform, or the source with a C compiler"

#: Extras that are no feature of the library: they are not reported.
HIDDEN_EXTRAS = ("all", "bench", "dev")

#: The environment variables that the installed library reads.
VARIABLES = ("TOOLGRAMMAR_CACHE_DIR", "TOOLGRAMMAR_INTERPRETED")

#: Variables of the build and of the tests, which are not misspelt.
OTHER_VARIABLES = ("TOOLGRAMMAR_PURE", "TOOLGRAMMAR_NO_EXTENSIONS", "TOOLGRAMMAR_CHECKED", "TOOLGRAMMAR_TEST_MODEL")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        level: ``error`` if the library or a feature does not work, ``warning`` if it works slower or untested.
        message: the problem.
        remedy: the command or the setting that ends it.
    """

    level: Literal["error", "warning"]
    message: str
    remedy: str


@dataclass(frozen=True)
class Package:
    """A package that the library requires.

    Attributes:
        name: its name on the package index.
        wanted: the range of versions that is tested, empty for any.
        installed: its version; None if it is not installed.
        is_tested: True if the installed version is in the range.
    """

    name: str
    wanted: str
    installed: str | None
    is_tested: bool


@dataclass
class Installation:
    """What is installed.

    Attributes:
        library: version and folder of the library.
        python: version, implementation, platform, and whether it runs without a GIL.
        kernel: number of compiled modules, and of those that should be compiled.
        packages: the required packages.
        extras: the packages of each extra.
        models: addresses of the models on this machine, with their files or folders.
        cache: folder of the vocabulary cache, number and size of its files; the folder is None if it is off.
        variables: the set environment variables.
        findings: what is wrong.
    """

    library: dict[str, str] = field(default_factory=dict)
    python: dict[str, Any] = field(default_factory=dict)
    kernel: dict[str, Any] = field(default_factory=dict)
    packages: list[Package] = field(default_factory=list)
    extras: dict[str, list[Package]] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """True if no finding is an error."""
        return not any(finding.level == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {"ok": self.is_sound, **asdict(self)}

    def add(self, level: Literal["error", "warning"], message: str, remedy: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(level, message, remedy))


def inspect() -> Installation:
    """Inspect the installed library, its packages, models and caches; nothing is fetched and nothing is left behind."""
    found = Installation()
    _library(found)
    _python(found)
    _packages(found)
    _variables(found)
    _compiled(found)
    if found.is_sound:  # else there may be nothing to import
        _engine(found)
    if found.is_sound:
        _cache(found)
        _models(found)
    return found


def _library(found: Installation) -> None:
    import toolgrammar.core as core

    found.library = {"version": version(PACKAGE), "folder": str(_core_folder(core))}


def _core_folder(core: Any) -> Path:
    return Path(str(core.__file__)).parent


def _python(found: Installation) -> None:
    """Note the version of Python, and whether threads run at the same time."""
    from toolgrammar.core.compiled import Build

    has_gil = Build.of_installation().has_gil
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    found.python = {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.machine()}",
        "free_threaded": free_threaded,
        "gil": has_gil,
    }
    if sys.version_info < LOWEST_PYTHON:
        found.add("error", f"Python {platform.python_version()} is not supported", "use Python 3.10 or newer")
    if free_threaded and has_gil:
        found.add(
            "warning",
            "this free-threaded Python has switched its GIL on, so threads do not run at the same time",
            "start it with PYTHON_GIL=0, or with -W default to see the module that asks for the GIL",
        )


def _compiled(found: Installation) -> None:
    """Count the compiled modules."""
    from toolgrammar.core.compiled import Build

    build = Build.of_installation()
    found.kernel = {"compiled": build.compiled, "modules": build.modules, "interpreted": build.is_interpreted}
    if build.is_interpreted:
        found.add("warning", "TOOLGRAMMAR_INTERPRETED is set: the kernel runs about ten times slower", "unset it")
    elif not build.compiled:
        why = "it is compiled for another Python" if build.has_others else "this is the pure form"
        found.add(
            "warning", f"no module is compiled ({why}): new schemas and masks take about ten times as long", AGAIN
        )
    elif build.compiled < build.modules:
        found.add("error", f"only {build.compiled} of {build.modules} modules are compiled", AGAIN)


def _engine(found: Installation) -> None:
    """Make one mask: the tokens that may begin a positive integer."""
    try:
        from toolgrammar.core.grammar import Grammar
        from toolgrammar.core.vocabulary import Vocabulary

        vocabulary = Vocabulary([b"1", b"-", b"x", b"", b"0", None], eos=[5], cache_dir=False)
        matcher = Grammar.from_json_schema({"type": "integer", "minimum": 1}).bind(vocabulary).matcher()
        is_right = matcher.allowed_tokens() == [0]
    except Exception as error:  # whatever a broken installation raises is the finding
        found.add("error", f"the engine cannot be used: {type(error).__name__}: {error}", AGAIN)
    else:
        if not is_right:
            found.add("error", "the engine gives a wrong mask", AGAIN)


def _packages(found: Installation) -> None:
    """Note the required and the optional packages, and which are missing or outside their tested range."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        found.add("error", "the required package packaging is not installed", "pip install packaging")
        return
    requirements = [Requirement(line) for line in requires(PACKAGE) or ()]
    without_extras = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    found.packages = _versions(without_extras)
    for package in found.packages:
        if not package.is_tested:
            has = "is not installed" if package.installed is None else f"has version {package.installed}"
            found.add(
                "error",
                f"the required package {package.name} {has} ({package.wanted or 'any version'} is required)",
                f"pip install '{package.name}{package.wanted}'",
            )
    extras: dict[str, list[Requirement]] = defaultdict(list)
    for requirement in requirements:
        for extra in _extras_of(requirement):
            extras[extra].append(requirement)
    for extra, members in extras.items():
        # An extra that is made of others requires this package itself, with these.
        found.extras[extra] = _versions(each for each in members if each.name != PACKAGE)
        for package in found.extras[extra]:
            if package.installed is not None and not package.is_tested:
                found.add(
                    "warning",
                    f"{package.name} {package.installed} is outside the tested range {package.wanted}",
                    f"pip install 'toolgrammar[{extra}]'",
                )


def _extras_of(requirement: Requirement) -> list[str]:
    """Return the reported extras that ask for a package on this platform."""
    from importlib.metadata import metadata

    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):  # required without any extra
        return []
    names = [name for name in metadata(PACKAGE).get_all("Provides-Extra") or () if name not in HIDDEN_EXTRAS]
    return [name for name in names if requirement.marker.evaluate({"extra": name})]


def _versions(requirements: Iterable[Requirement]) -> list[Package]:
    """Return required packages with their installed versions."""
    found = []
    for each in requirements:
        try:
            has: str | None = version(each.name)
        except PackageNotFoundError:
            has = None
        fits = has is not None and each.specifier.contains(has, prereleases=True)
        found.append(Package(each.name, str(each.specifier), has, fits))
    return found


def _cache(found: Installation) -> None:
    """Note the cache of vocabularies on disk, and whether it can be written."""
    from toolgrammar.core.vocabulary import cache_folder

    folder = cache_folder()
    found.cache = {"folder": None if folder is None else str(folder), "files": 0, "bytes": 0}
    if folder is None:
        found.add(
            "warning",
            f"the vocabulary cache is off ({VARIABLES[0]}): each process computes the tables of its vocabulary again",
            f"unset {VARIABLES[0]}, or set it to a folder",
        )
        return
    files = [path.stat().st_size for path in folder.glob("*.arrays")] if folder.is_dir() else []
    found.cache |= {"files": len(files), "bytes": sum(files)}
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        with TemporaryDirectory(dir=nearest, prefix=".toolgrammar-"):  # a trial: the rights of /proc allow what fails
            pass
    except OSError as error:
        said = f"the cache folder {folder} cannot be written: {error.strerror}"
        found.add("warning", said, f"set {VARIABLES[0]} to another folder")


def _models(found: Installation) -> None:
    """List the models that other addresses than a path load."""
    from toolgrammar.core.models import stored_models

    found.models |= {model.address: str(model.path) for model in stored_models()}


def _variables(found: Installation) -> None:
    found.variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    for name in sorted(os.environ):
        if name.startswith("TOOLGRAMMAR_") and name not in (*VARIABLES, *OTHER_VARIABLES):
            found.add("warning", f"the environment variable {name} has no meaning", f"known: {', '.join(VARIABLES)}")
