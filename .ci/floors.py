"""Print the oldest versions that a wheel promises to work with: ``python .ci/floors.py dist/*.whl``."""

import re
import sys
import zipfile


def floors(wheel):
    """Lower bounds of the dependencies in the metadata of a wheel, without those of extras, as ``name==version``."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    return [
        f"{name}=={version}" for name, version in re.findall(r"^Requires-Dist: ([\w-]+)>=([\d.]+)$", text, flags=re.M)
    ]


if __name__ == "__main__":
    print(*floors(sys.argv[1]))
