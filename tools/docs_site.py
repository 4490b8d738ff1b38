"""Generate pages of the site from modules, commands and notebooks; fill the navigation; check the built pages."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
REST = "*"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'>\s]+)[^>]*>")


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages that are made, then fill the folders of the navigation."""
    from mkdocs.structure.files import File

    for place, text in made_pages().items():
        files.append(File.generated(config, place, content=text))
    pages = sorted(file.src_uri for file in files.documentation_pages())
    config.nav = filled(config.nav or [], pages)
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:  # noqa: ARG001
    """Name files of the project that are not on the site instead of linking to them.

    A link to nothing at all stays a link, so that the strict build finds it.
    """
    here = (Path(config.docs_dir) / page.file.src_uri).parent

    def named(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(here / link[2]))
        outside = not target.is_relative_to(config.docs_dir)
        if not (target.exists() and (outside or target.is_dir())):
            return link[0]
        return f"{link[1]} (`{target.relative_to(ROOT)}`)" if link[1].strip("`") not in str(target) else link[1]

    return _LINK.sub(named, markdown)


def on_post_build(config: "MkDocsConfig") -> None:
    """Make the search work from disk too, and refuse a site that would load something from elsewhere."""
    from mkdocs.exceptions import PluginError

    # A page opened from disk may run a script beside it, but not read a file.
    index = Path(config.site_dir) / "search" / "search_index.json"
    index.with_suffix(".js").write_text(f"var __index = {index.read_text()}")
    for file in Path(config.site_dir).rglob("*.html"):
        for address in loaded_from_elsewhere(file.read_text()):
            raise PluginError(f"{file}: loads {address}; the site must hold all it needs")


def loaded_from_elsewhere(html: str) -> list[str]:
    """The addresses a page would load, besides what it merely links to."""
    return [found[1] for found in _LOADED.finditer(html) if 'rel="canonical"' not in found[0]]


def made_pages() -> dict[str, str]:
    """Generate pages, by their path on the site."""
    pages = {
        "command-line.md": command_line(),
        "changelog.md": _from_the_root("CHANGELOG.md"),
        "security.md": _from_the_root("SECURITY.md"),
    }
    pages |= {f"examples/{path.stem}.md": notebook(path) for path in sorted((ROOT / "examples").glob("*.ipynb"))}
    return pages | {f"api/{name}.md": f"# leapts.{name}\n\n::: leapts.{name}\n" for name in modules()}


def _from_the_root(name: str) -> str:
    """A page kept at the root, with its links into `docs/` as they are on the site."""
    return (ROOT / name).read_text().replace("](docs/", "](")


def modules() -> list[str]:
    """The names directly below `leapts` that are not private."""
    found = (path for path in (ROOT / "src" / "leapts").iterdir() if path.suffix == ".py" or path.is_dir())
    return sorted(path.stem for path in found if not path.stem.startswith("_"))


def notebook(path: Path) -> str:
    """Convert a notebook with its outputs to a page."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"]).strip()
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_output(output["data"]) for output in cell.get("outputs", ()) if "data" in output]
    return "\n\n".join([*parts, f"*This page is `examples/{path.name}`; a test runs it.*"]) + "\n"


def _output(data: Mapping[str, Any]) -> str:
    """Convert the output of a cell: a picture, a table or text."""
    if "image/png" in data:
        return f"![Output of the cell above](data:image/png;base64,{''.join(data['image/png']).strip()})"
    if "text/html" in data:
        return re.sub(
            r'<style.*?</style>|\n\s*| border="1" class="\w+"', "", "".join(data["text/html"]), flags=re.DOTALL
        )
    return f"```text\n{''.join(data['text/plain'])}\n```"


def command_line() -> str:
    """Show the help of every command, as in a terminal."""
    import typer.main
    from typer.testing import CliRunner

    from leapts.cli.app import app

    parts = ["# Command line", "What each command's `--help` says."]
    for words in _commands(typer.main.get_command(app), ()):
        shown = CliRunner().invoke(app, [*words, "--help"], prog_name="leapts", env={"COLUMNS": "96"}).output
        parts.append(f"## {' '.join(['leapts', *words])}\n\n```text\n{shown.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(below, (*words, name))


def filled(nav: Sequence[Any], pages: Sequence[str]) -> list[Any]:
    """The navigation with its folders spelled out, and without the sections that have no page.

    Args:
        nav: As in `mkdocs.yml`: pages, and sections with a title.
        pages: Every page of the site, in the order they shall have.
    """
    named = set(_named(nav))
    expanded = [page for page in pages if page not in named]

    def fill(items: Sequence[Any]) -> list[Any]:
        full: list[Any] = []
        for item in items:
            if isinstance(item, dict):
                sections = {title: fill(below) for title, below in item.items()}
                full += [{title: below} for title, below in sections.items() if below]
            elif item == REST:
                full += [page for page in expanded if "/" not in page]
            elif item.endswith("/"):
                full += [page for page in expanded if page.startswith(item)]
            else:
                full.append(item)
        return full

    return fill(nav)


def _named(nav: Sequence[Any]) -> Iterator[str]:
    for item in nav:
        if isinstance(item, dict):
            for below in item.values():
                yield from _named(below)
        else:
            yield item
