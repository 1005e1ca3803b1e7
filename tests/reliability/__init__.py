"""Trials of everything that can go wrong around the library: crashes, power cuts, interrupts, faults, races, damage."""
