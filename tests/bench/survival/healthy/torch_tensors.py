# needs: torch
# %% setup
import near_limit
import torch

torch.ones(10).sum()

# %%
tensors = []
while near_limit.room(0.945) > 16 * near_limit.MIB:
    tensors.append(torch.full((2_000_000,), float(len(tensors))))
near_limit.hold()
assert all(float(tensor[-1]) == number for number, tensor in enumerate(tensors))
print("digest:", sum(float(tensor[0]) for tensor in tensors[:50]))
