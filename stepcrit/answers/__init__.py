"""One Document a verb, composed from analyses. What is printed is decided here; how, in `report`."""
