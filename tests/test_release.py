"""A release is made by one command: version, tag, notes, archives; and what the repository says of itself agrees."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECTION = "## 99.0.0\n\n### Fixed\n\n- Nothing was wrong with `x`.\n\n"

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="a source archive has no history to release")


def git(folder: Path, *arguments: str) -> str:
    """Run git, and return its output."""
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def release(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script of a repository; the wheel is one without compiled modules."""
    git_user = {f"GIT_{who}_{what}": "n" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **git_user, "TOOLGRAMMAR_PURE": "1"}
    command = [sys.executable, str(folder / ".ci" / "release"), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone whose changelog begins with a new version."""
    clone = tmp_path / "repository"
    git(tmp_path, "clone", "--quiet", "--shared", str(ROOT), str(clone))
    for tag in git(clone, "tag").split():
        git(clone, "tag", "--delete", tag)
    for name in (".ci/release", "CITATION.cff", "pyproject.toml", "MANIFEST.in"):
        shutil.copy(ROOT / name, clone / name)
    changes = (clone / "CHANGELOG.md").read_text(encoding="utf-8")
    (clone / "CHANGELOG.md").write_text(changes.replace("## ", f"{SECTION}## ", 1), encoding="utf-8")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "A new version")
    return clone


@pytest.mark.timeout(600)
def test_a_dry_run_makes_everything_and_changes_nothing(repository: Path, tmp_path: Path) -> None:
    """The source archive and the wheel are of the new version; the repository has no new commit, file or tag."""
    before = git(repository, "rev-parse", "HEAD")
    done = release(repository, "--dry-run", "--only", "sources", "wheel", "--into", tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    made = sorted(path.name for path in (tmp_path / "dist").iterdir())
    assert made == ["SHA256SUMS", "toolgrammar-99.0.0-py3-none-any.whl", "toolgrammar-99.0.0.tar.gz"]
    for line in (tmp_path / "dist" / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((tmp_path / "dist" / name).read_bytes()).hexdigest() == digest
    assert git(repository, "rev-parse", "HEAD") == before
    assert git(repository, "status", "--porcelain") == git(repository, "tag") == ""


def test_a_release_writes_the_version_and_a_tag_with_the_notes(repository: Path) -> None:
    """Every file that names the version has it; the same version is not released twice."""
    done = release(repository, "--only")
    assert done.returncode == 0, done.stderr
    assert git(repository, "show", "--format=%s", "--stat=200", "v99.0.0^{commit}").splitlines()[0] == "Version 99.0.0"
    assert 'version = "99.0.0"' in (repository / "pyproject.toml").read_text(encoding="utf-8")
    cited = (repository / "CITATION.cff").read_text(encoding="utf-8")
    assert "\nversion: 99.0.0\n" in cited and re.search(r"\ndate-released: 20\d\d-\d\d-\d\d\n", cited)
    message = git(repository, "tag", "--list", "--format=%(contents)", "v99.0.0")
    assert message == "toolgrammar 99.0.0\n\n### Fixed\n\n- Nothing was wrong with `x`."
    again = release(repository, "--dry-run", "--only")
    assert again.returncode != 0 and "99.0.0 is not above 99.0.0, which has a tag" in again.stderr


@pytest.mark.parametrize(
    ("change", "arguments", "error"),
    [
        ({"README.md": "x"}, [], "commit or undo first"),
        (
            {"CHANGELOG.md": "# Changes\n\n## 99.0.0\n\n## 1.0.0\n\n- x\n"},
            ["--notes", "99.0.0"],
            "no entries for 99.0.0",
        ),
        ({}, ["98.0.0"], "the changelog begins with 99.0.0, not with 98.0.0"),
        ({"CHANGELOG.md": "# Changes\n\n## next\n\n- x\n"}, [], "'next' is not a version"),
    ],
)
def test_what_is_not_ready_is_not_released(
    repository: Path, change: dict[str, str], arguments: list[str], error: str
) -> None:
    """A change that is not committed, a version without changes, another version, no version."""
    for name, text in change.items():
        (repository / name).write_text(text, encoding="utf-8")
    done = release(repository, *arguments, "--only")
    assert done.returncode != 0 and error in done.stderr
    assert git(repository, "tag") == ""


def test_documentation_of_versions_lies_side_by_side(tmp_path: Path) -> None:
    """The first page leads to the newest final version; a version that is published again replaces itself."""
    for number in ("0.9.0", "0.10.0", "0.11.0rc1", "0.10.0"):
        (tmp_path / "site").mkdir(exist_ok=True)
        (tmp_path / "site" / "index.html").write_text(number, encoding="utf-8")
        dist = tmp_path / f"dist-{number}"
        dist.mkdir(exist_ok=True)
        with tarfile.open(dist / f"toolgrammar-{number}-docs.tar.gz", "w:gz") as archive:
            archive.add(tmp_path / "site", number)
        done = release(ROOT, "--into", dist, "--publish-docs", tmp_path / "pages")
        assert done.returncode == 0, done.stderr
    pages = tmp_path / "pages"
    assert json.loads((pages / "versions.json").read_text(encoding="utf-8")) == ["0.11.0rc1", "0.10.0", "0.9.0"]
    assert 'url=0.10.0/"' in (pages / "index.html").read_text(encoding="utf-8")
    assert (pages / "0.10.0" / "index.html").read_text(encoding="utf-8") == "0.10.0"


def test_the_citation_has_this_version() -> None:
    """The newest version is the cited one."""
    assert f"\nversion: {version('toolgrammar')}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def read(path: str) -> Any:
    """Return the content of a YAML file of the repository."""
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_pre_commit_has_the_versions_of_ci() -> None:
    """Ruff's hook is of the version that constraints.txt pins."""
    (hook,) = [one for one in read(".pre-commit-config.yaml")["repos"] if "ruff" in one["repo"]]
    pinned = re.search(r"^ruff==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None and hook["rev"] == f"v{pinned[1]}"


@pytest.mark.parametrize("path", [path.relative_to(ROOT).as_posix() for path in ROOT.glob(".github/workflows/*.yml")])
def test_workflows_run_named_commits_with_few_rights(path: str) -> None:
    """Each action is a commit, and a workflow may read and nothing else unless a job says so; its commands and
    the workflows that it uses exist."""
    workflow = read(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        if "uses" in job:  # another workflow of ours
            assert (ROOT / job["uses"]).is_file()
        for step in job.get("steps", ()):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40)), step
            for script in re.findall(r"(?<![\w/])\.ci/[a-z]+(?=\s|$)", step.get("run", "")):
                assert (ROOT / script).is_file(), script


@pytest.mark.parametrize(
    "path", [path.relative_to(ROOT).as_posix() for path in ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")]
)
def test_issue_forms_are_forms(path: str) -> None:
    """Each form has a name, a description and fields of known types with labels."""
    form = read(path)
    if path.endswith("config.yml"):
        assert form == {"blank_issues_enabled": False}
        return
    assert form["name"] and form["description"]
    for field in form["body"]:
        assert field["type"] in ("dropdown", "input", "textarea") and field["attributes"]["label"] and field["id"]
