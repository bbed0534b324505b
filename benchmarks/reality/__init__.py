"""The emulator beside real processes: seconds of rounds as predicted, and as processes of Flower take them.

A run is emulated over three fleets, and the seconds of every round are written down. Then a server and eight
client processes of Flower play the same rounds: same data, initial model, local steps and participants. No
process sleeps for a time that the emulator computed: bytes pass links with a rate and a latency (`link`), and
a slow device sleeps in proportion to the CPU time that each of its steps took (`flower`).
"""
