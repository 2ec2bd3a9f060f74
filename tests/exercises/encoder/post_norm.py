"""Answers to the exercise encoder.post_norm."""

from mlax_tutorial import nn
from mlax_tutorial.exercises.encoder.post_norm import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("This is the pre-norm block")
class PreNorm(nn.TransformerBlock):
    pass


@answers.wrong("The mask does not reach attention")
class Unmasked(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x)))
        return call.mlp_norm(y + call.drop(call.mlp(y)))


@answers.wrong("but before the sums")
class BeforeTheSums(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        x = x + call.attention_norm(call.drop(call.attention(x, **inputs)))
        return x + call.mlp_norm(call.drop(call.mlp(x)))


@answers.wrong("forward never calls mlp_norm")
class OneNorm(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x, **inputs)))
        return y + call.drop(call.mlp(y))


@answers.wrong("The perceptron is given the sum before")
class NotNormalized(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = x + call.drop(call.attention(x, **inputs))
        return call.mlp_norm(call.attention_norm(y) + call.drop(call.mlp(y)))


@answers.wrong("The two norms stand in each other's place")
class Swapped(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = call.mlp_norm(x + call.drop(call.attention(x, **inputs)))
        return call.attention_norm(y + call.drop(call.mlp(y)))


@answers.wrong("The way around the parts is missing")
class NoWayAround(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = call.attention_norm(call.drop(call.attention(x, **inputs)))
        return call.mlp_norm(call.drop(call.mlp(y)))


@answers.wrong("The second sum adds x")
class AddsTheFirst(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x, **inputs)))
        return call.mlp_norm(x + call.drop(call.mlp(y)))


@answers.wrong("Derive from `nn.TransformerBlock`")
class Another(nn.Composite):
    features: int
    heads: int

    def children(self):
        return nn.TransformerBlock(self.features, heads=self.heads).children()

    def forward(self, call, x, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x, **inputs)))
        return call.mlp_norm(y + call.drop(call.mlp(y)))


# Right ones of unusual style


@answers.right
class InPieces(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        looked = call.drop(call.attention(x, **inputs))
        x = call.attention_norm(looked + x)
        wide = call.drop(call.mlp(x))
        return call.mlp_norm(wide + x)


@answers.right
class OneName(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        x = call.attention_norm(x + call.drop(call.attention(x, **inputs)))
        return call.mlp_norm(x + call.drop(call.mlp(x)))


def dropping(where):
    class Dropping(nn.TransformerBlock):
        def forward(self, call, x, **inputs):
            if where == "the sum":
                y = call.attention_norm(call.drop(x + call.attention(x, **inputs)))
            elif where == "the norm":
                y = call.drop(call.attention_norm(x + call.attention(x, **inputs)))
            else:
                y = call.attention_norm(x + call.attention(x, **inputs))
            return call.mlp_norm(y + call.drop(call.mlp(y)))

    return Dropping


answers.wrong("With dropout the output is wrong")(dropping("the sum"))
answers.wrong("With dropout the output is wrong")(dropping("the norm"))
answers.wrong("With dropout the output is wrong")(dropping("the perceptron alone"))


@answers.right
class OneFunctionForBoth(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        def part(layer, norm, x, **inputs):
            return norm(call.drop(layer(x, **inputs)) + x)

        return part(call.mlp, call.mlp_norm, part(call.attention, call.attention_norm, x, **inputs))


def handing_on(*names):
    class HandsOn(nn.TransformerBlock):
        def forward(self, call, x, **inputs):
            some = {name: inputs[name] for name in names if name in inputs}
            y = call.attention_norm(x + call.drop(call.attention(x, **some)))
            return call.mlp_norm(y + call.drop(call.mlp(y)))

    return HandsOn


answers.wrong("`bias` does not")(handing_on("mask"))
answers.wrong("`bias` does not")(handing_on("mask", "segments", "context"))
answers.wrong("`segments` does not")(handing_on("mask", "bias"))
answers.wrong("`context` does not")(handing_on("mask", "bias", "segments"))


@answers.wrong("`bias` does not")
class MaskByName(nn.TransformerBlock):
    def forward(self, call, x, mask=None, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x, mask=mask)))
        return call.mlp_norm(y + call.drop(call.mlp(y)))


@answers.right
class MaskAndTheRest(nn.TransformerBlock):
    def forward(self, call, x, mask=None, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x, mask=mask, **inputs)))
        return call.mlp_norm(y + call.drop(call.mlp(y)))
