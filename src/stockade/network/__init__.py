"""May this connect? Protocol cores without I/O, the gate that judges each destination, and the proxy that joins them."""
