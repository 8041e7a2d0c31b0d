"""What a line does to data: decoding, augmenting, tokenising or collating it. By names alone."""

from __future__ import annotations

import re
from enum import StrEnum

from hotloop.diagnose.call_sites import inside_the_loader
from hotloop.diagnose.sightings import Sighting
from hotloop.inspection import Frame


class Kind(StrEnum):
    CONVERSION = "conversion"
    TOKENISATION = "tokenisation"
    AUGMENTATION = "augmentation"
    DECODING = "decoding"
    COLLATION = "collation"


_FILES = {
    Kind.CONVERSION: r"$^",  # told by names alone: these lie among the augmentations
    Kind.TOKENISATION: r"/(tokenizers|sentencepiece|tiktoken|spacy|nltk|re|regex)/|/tokenization_",
    Kind.AUGMENTATION: r"/(torchvision/transforms|albumentations|imgaug|kornia"
    r"|torchaudio/transforms|audiomentations)/",
    Kind.DECODING: r"/(PIL|cv2|torchvision/io|imageio|skimage/io|h5py|pydicom|nibabel|soundfile"
    r"|decord|av|torchcodec|json)/|/(gzip|lzma|bz2|zipfile|tarfile|csv|pickle)\.py|/_?npyio(_impl)?\.py",
    Kind.COLLATION: r"/torch/utils/data/_utils/collate\.py",
}
_NAMES = {
    # Which draw nothing: the same item comes out of them every time.
    Kind.CONVERSION: r"\b(to_?tensor|pil_to_tensor|to_?image|to_?dtype|normalize"
    r"|convert_image_dtype)\b",
    Kind.TOKENISATION: r"token|\b(re|regex)\.(findall|finditer|split|sub|match|search)$",
    # Not "transform" within "Transformer", which is a model.
    Kind.AUGMENTATION: r"augment|transform(?!er)|flip|crop|rotat|blur|noise|jitter|mixup|cutout"
    r"|resiz|affine|grid_sample|warp|distort",
    Kind.DECODING: r"decode|decompress|imread|imdecode|read_image|unpack|json\.loads|np\.load\b"
    r"|Image\.open|unpickle|pickle\.loads|\b(zlib|gzip|lzma|bz2)\.",
    Kind.COLLATION: r"collate|pad_sequence",
}

_CALLED = re.compile(r"[\w.]+(?=\s*\()")
"""Not what it is told: data made with noise is not augmented, and tokens may just be read."""


def kind_of(sighting: Sighting) -> Kind | None:
    """By the innermost line that can be told: a transform may decode, and a collator tokenise."""
    inside = inside_the_loader(sighting)
    return next((kind for frame in reversed(inside) if (kind := _kind(frame))), None)


def _kind(frame: Frame) -> Kind | None:
    """By the function's name, then by where it lies: what decodes pictures also turns them.

    Lastly by what the user's line itself calls: a function that is not Python is on no stack.
    """
    for kind in Kind:
        if re.search(_NAMES[kind], frame.function, re.IGNORECASE):
            return kind
    for kind in Kind:
        if re.search(_FILES[kind], frame.file):
            return kind
    called = " ".join(_CALLED.findall(frame.source)) if frame.is_users else ""
    return next((kind for kind in Kind if re.search(_NAMES[kind], called)), None)
