"""The site finds its pages by itself, and loads nothing from elsewhere."""

from docs_site import filled, loaded_from_elsewhere, made_pages, modules


def test_folders_of_the_navigation_are_filled_in_order() -> None:
    nav = [{"Start": ["index.md"]}, {"How to": ["how-to/first.md", "how-to/"]}, {"Rest": ["*"]}]
    pages = ["how-to/a.md", "how-to/first.md", "index.md", "other.md"]
    assert filled(nav, pages) == [
        {"Start": ["index.md"]},
        {"How to": ["how-to/first.md", "how-to/a.md"]},
        {"Rest": ["other.md"]},
    ]


def test_a_section_without_pages_is_left_out() -> None:
    assert filled([{"How to": ["how-to/"]}, {"Start": ["index.md"]}], ["index.md"]) == [{"Start": ["index.md"]}]


def test_what_a_page_loads_is_told_from_what_it_links_to() -> None:
    loads = '<script src="https://cdn.example/x.js"></script><img alt="" src=//cdn.example/y.png>'
    links = '<a href="https://example.org">there</a><link rel="canonical" href="https://example.org/"><img src="z.png">'
    assert loaded_from_elsewhere(loads) == ["https://cdn.example/x.js", "//cdn.example/y.png"]
    assert loaded_from_elsewhere(links) == []


def test_pages_are_made_for_modules_commands_and_notebooks() -> None:
    pages = made_pages()
    assert {f"api/{name}.md" for name in modules()} <= set(pages)
    assert {"model", "data", "forecasting", "server"} <= set(modules())
    assert "## leapts datasets fetch" in pages["command-line.md"]
    assert "LeapTS(h=18" in pages["examples/csv_to_report.md"]
    assert "data:image/png" in pages["examples/csv_to_report.md"]
