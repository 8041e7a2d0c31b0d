"""Which hotloop this is. By itself: the package's own file names what everything else is for."""

VERSION = "0.1.0"
