"""Registry of builders by name: each makes a trace folder of one kind of data set.

`base.py` has what all builders share, `images.py` what those of images do: a kind of images only lists its
samples. Everything is written in a workspace (`workspace.py`), which becomes the trace folder at the end.
"""

from emulator.plugins import Registry
from traces.building.base import Builder, Built, Request, Watch

BUILDERS: Registry[type[Builder]] = Registry(
    "kind of data set",
    "driftscale.builder",
    {
        "cifar": "traces.building.kinds.cifar:Cifar",
        "cityscapes": "traces.building.kinds.cityscapes:Cityscapes",
        "fedscale": "traces.building.kinds.client_mapping:FedScale",
        "fmow": "traces.building.kinds.fmow:Fmow",
        "folder": "traces.building.kinds.image_folder:ImageFolder",
        "idx": "traces.building.kinds.idx_images:IdxImages",
        "openimages": "traces.building.kinds.client_mapping:OpenImages",
        "table": "traces.building.table.build:Table",
        "text": "traces.building.kinds.text:Text",
        "waymo": "traces.building.kinds.waymo:Waymo",
    },
    base="traces.building.base:Builder",
)

__all__ = ["BUILDERS", "Builder", "Built", "Request", "Watch"]
