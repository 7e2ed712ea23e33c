# %% setup
from dataclasses import dataclass, field


@dataclass
class Node:
    state: tuple
    children: list = field(default_factory=list)


# %%
# A game tree, breadth first, without an end.
root = Node((0,) * 9)
level = [root]
while True:
    below = []
    for node in level:
        for square in range(9):
            child = Node((*node.state[:square], 1, *node.state[square + 1 :]))
            node.children.append(child)
            below.append(child)
    level = below

# %% retry
del root, level, below, node, child
assert Node((0,)).children == []
