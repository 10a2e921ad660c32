"""Videos, masks, boxes."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded
from torch import nn
from torch.profiler import record_function


class FrameEncoder(nn.Module):
    """A number of features for each picture."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
                                  nn.Conv2d(2 * width, 4 * width, 3, 1, 1), nn.ReLU(), nn.Conv2d(4 * width, 4 * width, 3, 1, 1), nn.ReLU())

    def forward(self, pictures):
        return self.body(pictures).mean(dim=(2, 3))


@recorded(stacks=True)
@pair
def frames_encoded_for_each_clip(s, good):
    """A video of 40 frames is classified by clips of 8 frames, one every 2 frames."""
    width, side, frames, rows = s.pick(64, 4), s.pick(224, 16), s.pick(40, 12), s.pick(2, 1)
    encoder = FrameEncoder(width).to(s.device, half(s.device), memory_format=torch.channels_last).eval()
    over_time = nn.Sequential(nn.Linear(8 * 4 * width, 512), nn.GELU(), nn.Linear(512, 400)).to(s.device, half(s.device)).eval()
    videos = torch.randn(rows, frames, 3, side, side, device=s.device, dtype=half(s.device))

    def clips_of(values):
        """values: one for each frame."""
        return torch.stack([values[:, at:at + 8] for at in range(0, frames - 7, 2)], dim=1)

    def encoded(pictures):
        return encoder(pictures.contiguous(memory_format=torch.channels_last))

    def features_of_clips():
        if good:
            return clips_of(encoded(videos.flatten(0, 1)).unflatten(0, (rows, frames)))
        seen = clips_of(videos)
        return encoded(seen.flatten(0, 2)).unflatten(0, seen.shape[:3])

    @torch.inference_mode()
    def step():
        with record_function("clips"):
            features = features_of_clips()
        return over_time(features.flatten(2)).float().softmax(dim=-1).mean(dim=1).square().sum(dim=-1)

    return step


@recorded(stacks=True)
@pair
def masks_upsampled_before_choice(s, good):
    """Segmentation by queries: of 200 masks the 20 best are shown, as large as the picture, with the box of each."""
    queries, kept, side, large, width = s.pick(200, 12), s.pick(20, 3), s.pick(128, 8), s.pick(1024, 32), s.pick(256, 16)
    head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(s.device, half(s.device)).eval()
    judge = nn.Linear(width, 1).to(s.device, half(s.device)).eval()
    pixels = torch.randn(width, side * side, device=s.device, dtype=half(s.device))
    embedded = torch.randn(queries, width, device=s.device, dtype=half(s.device))

    def enlarged(masks):
        return F.interpolate(masks[None].float(), size=(large, large), mode="bilinear", align_corners=False)[0]

    def postprocess(masks, scores):
        best = scores.topk(kept).indices
        if good:
            masks = masks[best]
        masks = enlarged(masks).sigmoid()
        return masks if good else masks[best]

    @torch.inference_mode()
    def step():
        scores = judge(embedded).squeeze(-1)
        masks = (head(embedded) @ pixels).view(queries, side, side)
        with record_function("postprocess"):
            shown = postprocess(masks, scores)
            across, down = shown.amax(dim=1) > 0.5, shown.amax(dim=2) > 0.5
        return shown.mean(dim=(1, 2)), across.float().mean(dim=1), down.float().mean(dim=1)

    return step


@recorded(stacks=True, active=5)
@pair
def slices_by_tensors_on_gpu(s, good):
    """What lies in 24 boxes of a picture is cut out of the features, brought to one size and classified."""
    width, side, count = s.pick(128, 4), s.pick(128, 24), s.pick(24, 4)
    body = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1), nn.ReLU())
    body = body.to(s.device, half(s.device), memory_format=torch.channels_last).eval()
    classify = nn.Linear(width * 49, 80).to(s.device, half(s.device)).eval()
    picture = torch.randn(4, 3, side, side, device=s.device, dtype=half(s.device)).contiguous(memory_format=torch.channels_last)
    corner = torch.randint(0, side - 12, (count, 2))
    proposed = torch.cat([corner, corner + torch.randint(8, 12, (count, 2))], dim=1).to(s.device)

    def cut_out(features, boxes):
        crops = []
        for box in boxes:
            crop = features[:, box[1]:box[3], box[0]:box[2]]
            crops.append(F.adaptive_avg_pool2d(crop, 7))
        return torch.stack(crops)

    @torch.inference_mode()
    def step():
        features = body(picture)[0]
        with record_function("crops"):
            crops = cut_out(features, proposed.tolist() if good else proposed)
        return classify(crops.flatten(1)).float().mean(dim=1)

    return step
