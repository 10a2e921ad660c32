"""Programs that several tests record."""


def make_net(torch):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.second(torch.relu(self.first(x)))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.Sequential(Block(), Block())

        def forward(self, x):
            return self.blocks(x).sum()

    return Net()
