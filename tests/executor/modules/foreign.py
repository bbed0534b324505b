"""Modules as users of other emulators bring them: plain torch, nothing of driftscale. Do not adapt them."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class LogisticRegression(nn.Module):
    def __init__(self, d_in, n_classes):
        super().__init__()
        self.fc = nn.Linear(d_in, n_classes)

    def forward(self, x):
        return self.fc(x.flatten(1))


class MLPDropout(nn.Module):
    def __init__(self, d_in, n_classes, hidden=64, p=0.2):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(), nn.Linear(d_in, hidden), nn.ReLU(), nn.Dropout(p), nn.Linear(hidden, n_classes)
        )

    def forward(self, x):
        return self.net(x)


class LeafFemnistCNN(nn.Module):  # 2 conv 5x5, pool, dense
    def __init__(self, n_classes=62, side=28, dense=2048):
        super().__init__()
        self.side = side
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(64 * (side // 4) ** 2, dense)
        self.fc2 = nn.Linear(dense, n_classes)

    def forward(self, x):
        x = x.view(-1, 1, self.side, self.side)
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class TffEmnistCNN(nn.Module):  # 2 conv 3x3, pool, dropout .25, dense, dropout .5
    def __init__(self, n_classes=62, side=28, dense=128):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.drop1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * ((side - 4) // 2) ** 2, dense)
        self.drop2 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(dense, n_classes)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x.unsqueeze(1)))))
        x = torch.flatten(self.drop1(F.max_pool2d(x, 2)), 1)
        return self.fc2(self.drop2(F.relu(self.fc1(x))))


class TffEmnistCNNFunctional(TffEmnistCNN):  # the same, dropout as many write it
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        del self.drop1, self.drop2

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x.unsqueeze(1)))))
        x = F.dropout(F.max_pool2d(x, 2), 0.25, training=self.training)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(F.dropout(x, 0.5, training=self.training))


class BasicBlock(nn.Module):
    def __init__(self, inp, planes, stride, norm):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, planes, 3, stride, 1, bias=False)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = norm(planes)
        self.downsample = None
        if stride != 1 or inp != planes:
            self.downsample = nn.Sequential(nn.Conv2d(inp, planes, 1, stride, bias=False), norm(planes))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, layers, n_classes, channels=3, norm=nn.BatchNorm2d, width=64):
        super().__init__()
        self.inp = width
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, 1, 1, bias=False), norm(width), nn.ReLU(inplace=True)
        )
        self.layers = nn.Sequential(
            *[self._layer(width * 2**i, n, 1 if i == 0 else 2, norm) for i, n in enumerate(layers)]
        )
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 2 ** (len(layers) - 1), n_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def _layer(self, planes, n, stride, norm):
        blocks = [BasicBlock(self.inp, planes, stride, norm)]
        self.inp = planes
        return nn.Sequential(*blocks, *[BasicBlock(planes, planes, 1, norm) for _ in range(n - 1)])

    def forward(self, x):
        x = x.unsqueeze(1) if x.dim() == 3 else x
        return self.fc(torch.flatten(self.avgpool(self.layers(self.stem(x))), 1))


def resnet_bn(n_classes, channels=3, width=64, layers=(2, 2, 2, 2)):
    return ResNet(layers, n_classes, channels, width=width)


def resnet_gn(n_classes, channels=3, width=64, layers=(2, 2, 2, 2)):
    return ResNet(layers, n_classes, channels, norm=lambda p: nn.GroupNorm(2, p), width=width)


class MobileBlockNet(nn.Module):  # depthwise separable convolutions, ReLU6, batch norm, dropout
    def __init__(self, num_labels, width=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU6(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU6(inplace=True),
            nn.Conv2d(width, 2 * width, 1, bias=False),
            nn.BatchNorm2d(2 * width),
        )
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(2 * width, num_labels))

    def forward(self, x):
        return self.classifier(self.features(x.unsqueeze(1)).mean([2, 3]))


class BNMLP(nn.Module):
    def __init__(self, d_in, n_classes, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(d_in, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.fc2 = nn.Linear(hidden, n_classes)

    def forward(self, x):
        return self.fc2(F.relu(self.bn(self.fc1(x.flatten(1)))))


class ViTTiny(nn.Module):  # with a class token, and drop rates that are read out of a tensor
    def __init__(self, n_classes, size=32, patch=4, dim=64, depth=4, heads=4, dropout=0.1, channels=3):
        super().__init__()
        rates = [x.item() for x in torch.linspace(0, dropout, depth)]
        self.patch = nn.Conv2d(channels, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, dim) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                dim, heads, dim * 4, dropout=p, activation="gelu", batch_first=True, norm_first=True
            )
            for p in rates
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, x):
        x = x.unsqueeze(1) if x.dim() == 3 else x
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class CharLSTM(nn.Module):  # LEAF's Shakespeare
    def __init__(self, vocab=80, emb=8, hidden=256, n_out=None):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, num_layers=2, batch_first=True)
        self.fc = nn.Linear(hidden, n_out or vocab)

    def forward(self, ids):
        out, _ = self.lstm(self.embeddings(ids))
        return self.fc(out[:, -1])


class Sent140LSTM(nn.Module):
    def __init__(self, vocab=1000, emb=50, hidden=64, dropout=0.3, n_out=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, num_layers=2, batch_first=True, dropout=dropout)
        self.fc = nn.Linear(hidden, n_out)

    def forward(self, ids):
        out, _ = self.lstm(self.emb(ids.long()))
        return self.fc(out[:, -1])


class SensorGRU(nn.Module):  # human activity: (time, channels)
    def __init__(self, num_labels, channels=6, hidden=32):
        super().__init__()
        self.gru = nn.GRU(channels, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.LayerNorm(2 * hidden), nn.Linear(2 * hidden, num_labels))

    def forward(self, x):
        return self.head(self.gru(x)[0].mean(1))


class BertClassifier(nn.Module):  # position ids and a causal mask as buffers, padding, a tied projection
    def __init__(self, vocab=200, dim=32, depth=1, heads=4, length=20, n_classes=4, dropout=0.1):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim, padding_idx=0)
        self.pos = nn.Embedding(length, dim)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("position_ids", torch.arange(length))
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), 1))
        layer = nn.TransformerEncoderLayer(dim, heads, dim * 4, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, ids):
        t = ids.shape[1]
        h = self.drop(self.tok(ids) + self.pos(self.position_ids[:t]))
        return self.head(self.encoder(h, mask=self.mask[:t, :t])[:, -1])


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.randn(r, base.in_features) / math.sqrt(base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + (x @ self.A.t() @ self.B.t()) * self.scale


class LoRAMLP(nn.Module):
    def __init__(self, d, n, hidden=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(),
            LoRALinear(nn.Linear(d, hidden)),
            nn.ReLU(),
            LoRALinear(nn.Linear(hidden, hidden)),
            nn.ReLU(),
            nn.Linear(hidden, n),
        )

    def forward(self, x):
        return self.net(x)


class TiedAuto(nn.Module):  # two layers share a weight
    def __init__(self, d, n):
        super().__init__()
        self.a = nn.Linear(d, d)
        self.b = nn.Linear(d, d)
        self.b.weight = self.a.weight
        self.fc = nn.Linear(d, n)

    def forward(self, x):
        return self.fc(F.relu(self.b(F.relu(self.a(x.flatten(1))))))


class Frozen(nn.Module):  # a frozen backbone, a trained head
    def __init__(self, d, n):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(d, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        for p in self.body.parameters():
            p.requires_grad = False
        self.head = nn.Linear(256, n)

    def forward(self, x):
        return self.head(self.body(x))


class NoisyFourier(nn.Module):  # a random projection that is never trained, and noise on what comes in
    def __init__(self, d, n, features=64, noise=0.1, keep=0.9):
        super().__init__()
        self.register_buffer("B", torch.randn(d, features) / math.sqrt(d))
        self.noise, self.keep = noise, keep
        self.fc = nn.Linear(2 * features, n)

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            x = x + self.noise * torch.randn_like(x)
            x = x * torch.bernoulli(torch.full_like(x, self.keep)) * (torch.rand_like(x) < 0.99)
        z = x @ self.B
        return self.fc(torch.cat([z.sin(), z.cos()], 1))


class Versioned(nn.Module):  # with an entry of its own in its state dict
    def __init__(self, d_in, n_classes):
        super().__init__()
        self.fc = nn.Linear(d_in, n_classes)

    def get_extra_state(self):
        return {"version": 3}

    def set_extra_state(self, state):
        assert state["version"] == 3

    def forward(self, x):
        return self.fc(x.flatten(1))
