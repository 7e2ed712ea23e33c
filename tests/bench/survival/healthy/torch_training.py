# needs: torch
# %% setup
import near_limit
import torch

torch.manual_seed(1)
x = torch.rand(4_000, 256)
y = x.sum(dim=1, keepdim=True)
model = torch.nn.Sequential(torch.nn.Linear(256, 2_000), torch.nn.ReLU(), torch.nn.Linear(2_000, 1))
optimizer = torch.optim.Adam(model.parameters())


def step():
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return float(loss.detach())


step()

# %%
kept = near_limit.fill(0.94, spare=90 * near_limit.MIB)
losses = [step() for _ in range(15)]
assert losses[-1] < losses[0]
print("digest:", f"{losses[-1]:.3e}", len(kept) > 3)
