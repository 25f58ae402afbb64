"""Put a build of the documentation into the site of all versions.

    python .ci/publish_docs.py HTML SITE VERSION URL

``HTML`` is the build, ``SITE`` the folder of the site, ``VERSION`` "dev" or a release such as "0.1", and ``URL`` the
address of the site. Each version has a folder. The newest release also has the folder "stable", to which the front page
leads, or to "dev" while there is no release. ``switcher.json`` lists the versions for the menu of the theme.
"""

import json
import re
import shutil
import sys
from pathlib import Path

_FRONT_PAGE = """<!doctype html>
<meta charset="utf-8">
<title>sk_sgmcmc</title>
<meta http-equiv="refresh" content="0; url={0}/">
<link rel="canonical" href="{0}/">
<a href="{0}/">Documentation of sk_sgmcmc</a>
"""


def releases(site):
    """Folders of releases, newest first."""
    names = [path.name for path in site.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def switcher(names, has_dev, url):
    """Entries of the theme's version switcher: the newest release, older ones, and the development version."""
    entries = [{"version": name, "url": f"{url}/{name}/"} for name in names]
    if entries:
        entries[0] |= {"name": f"{names[0]} (stable)", "url": f"{url}/stable/", "preferred": True}
    return entries + ([{"version": "dev", "url": f"{url}/dev/"}] if has_dev else [])


def publish(html, site, version, url):
    """Replace the folder of a version by a build, and update what leads to the versions."""
    if not re.fullmatch(r"dev|\d+\.\d+", version):
        raise ValueError(f"VERSION must be 'dev' or like '0.1'; got {version!r}.")
    site.mkdir(exist_ok=True)
    _replace(site / version, html)
    names = releases(site)
    if names:
        _replace(site / "stable", site / names[0])
    text = json.dumps(switcher(names, (site / "dev").is_dir(), url.rstrip("/")), indent=2)
    (site / "switcher.json").write_text(text + "\n", encoding="utf-8")
    (site / "index.html").write_text(_FRONT_PAGE.format("stable" if names else "dev"), encoding="utf-8")
    (site / ".nojekyll").touch()  # GitHub Pages would leave out folders that begin with an underscore.


def _replace(folder, source):
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(source, folder)


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
