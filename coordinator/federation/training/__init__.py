"""Updates, trained at dispatch or absorption: what clients remember, find and watch, and are sent of them."""
