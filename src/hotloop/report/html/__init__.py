"""The report as one HTML file: figures drawn as SVG, no network, no bundle of somebody else's."""
