"""May this connect? Protocol cores without I/O, the gate that judges destinations, the proxy that joins them."""
