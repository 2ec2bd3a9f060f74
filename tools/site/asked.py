"""What people type into the search, and where the book answers it: as the index at the back of a book, by words of its readers.

A line is a section and the phrases that lead to it, which need not stand in its text. A search for one of them, or for more
words than that, shows the section first. (What a phrase's words find besides comes after it.) A section that is gone is an error of
the build; `tests/site/searches.txt` holds searches, and the section that each must lead to.
"""

ASKED = """
book/jit#finding-the-cause-jax-explain-cache-misses: recompile, recompilation, recompiles, recompiling, retrace, compiles again, jit cache miss
book/jit#static-arguments-static-argnames: static argument, constant argument, hashable
book/jit#side-effects-and-hidden-arguments: global variable, side effect
book/jit#methods: jit a method, jit method
book/compiling#slow-compilation-find-it-make-it-shorter: slow compile, compile time, compilation time, slow compilation
book/compiling#the-persistent-cache-jax-compilation-cache-dir: cache on disk, compilation cache
book/compiling#when-a-shape-depends-on-values: dynamic shape, variable shape, boolean mask shape
book/compiling#padding-to-one-length: variable length, pad
book/compiling#export-and-symbolic-shapes-jax-export: deploy, serialize a function, onnx
book/control_flow#python-s-if-one-side-is-traced: if statement, if else
book/control_flow#python-loops-unroll-the-loops-of-lax-do-not: for loop, loop slow, unroll
book/control_flow#lax-while-loop-until-a-condition-fails: while loop
book/arrays#immutable-arrays-x-at-i-set: mutate, assign, assignment, item assignment, setitem, index update
book/arrays#in-place-updates-and-donation: in place, inplace, in-place update
book/arrays#type-promotion-and-weak-types: dtype mismatch, type mismatch, wrong dtype, implicit cast
book/arrays#bits-jax-enable-x64: float64, double precision, int64, x64
book/arrays#devices-jax-device-put: move to gpu, to device, to gpu, cuda
book/arrays#an-honest-clock: benchmark, timeit, time a function, timing, profile
book/randomness#keys-jax-random-key: random seed, seed, manual seed, prng
book/errors#find-a-nan-jax-debug-nans: nan, nans, inf, loss is nan
book/errors#print-values-jax-debug-print: print inside jit, print in jit, print a tracer
book/errors#look-inside-a-running-program: debug, debugger, breakpoint, pdb
book/errors#which-error-which-fix: error message, exception
book/derivative_rules#constants-in-a-derivative-lax-stop-gradient: detach, no grad, no_grad, requires_grad, stop gradient
book/derivative_rules#jax-custom-vjp-a-forward-and-a-backward-pass: custom gradient, custom backward, straight-through
book/derivative_rules#recomputation-jax-checkpoint: gradient checkpointing, activation checkpointing, rematerialization, remat
book/autodiff#microbatches-a-batch-in-parts: gradient accumulation, accumulate gradients, microbatch
book/autodiff#jax-grad-a-function-in-a-function-out: backward, backprop, backpropagation
book/vmap#per-example-gradients-vmap-of-grad: per-sample gradient, per sample gradient
book/vmap#less-memory-lax-map-and-batch-size: vmap out of memory
book/first_network#initial-weights: weight initialization, initialization, xavier, glorot, kaiming
book/first_network#training-validation-and-test-data: train test split, test set
book/layers#what-goes-wrong-when-they-mix: state_dict, model state
book/precision#mixed-precision-float32-weights-half-precision-inside: amp, autocast, half precision
book/precision#loss-scaling-for-float16: fp16, gradscaler, underflow
book/precision#what-a-format-can-represent-jnp-finfo: bf16, fp8, float range
book/optimizers#clipping: gradient clipping, clip gradients, clip by norm
book/optimizers#schedules: learning rate schedule, warmup, warm up, cosine decay, lr scheduler
book/optimizers#wrappers-freeze-accumulate-average: freeze, freezing, freeze layers, frozen, ema, polyak averaging
book/optimizers#gradient-descent-and-the-largest-learning-rate: learning rate too high, diverge, loss explodes
book/training_loop#shuffled-batches-and-a-validation-split: data loader, dataloader, dataset, minibatch, shuffle
book/training_loop#checkpoints-what-must-be-saved: save model, save a model, save checkpoint, save training, resume training, orbax
book/reference/training#mlax_tutorial.saving.load_weights: load weights, load model, pretrained weights, safetensors
book/training_loop#the-loop-progress-history-early-stopping: early stopping, overfitting, patience
book/training_loop#what-is-fast-a-python-loop-scan-prefetching: prefetch, slow training, gpu utilization, input pipeline
book/normalization#batchnorm-running-averages-and-inference-mode: batchnorm, batch norm, eval mode, train mode, running mean
book/normalization#dropout-where-the-random-bits-go: dropout
book/recurrent#vanishing-and-exploding-gradients-measured: exploding gradient, vanishing gradient
book/attention#masks-causal-padding-and-rows-that-see-nothing: causal mask, attention mask, padding mask
book/attention#positions-rotary-embeddings: positional encoding, position embedding, rope
book/attention#memory-plain-in-chunks-fused: flash attention, long sequence, attention memory
book/attention#a-key-value-cache: kv cache, kv-cache
book/gpt#sampling-temperature-top-k-and-top-p: temperature, nucleus sampling, sampling text
book/gpt#a-tokenizer-byte-pairs: tokenizer, bpe, tokenize
book/gpt#mixtures-of-experts-and-ragged-dot: moe, experts
book/encoder#lora-on-a-frozen-encoder: fine-tune, fine tune, fine-tuning, finetune, finetuning, transfer learning, adapter
book/names_and_text#imbalance-class-weights-and-balanced-accuracy: class imbalance, class weight, imbalanced data
book/objects#a-module-is-a-pytree: nn.module, module class, equinox, nnx
book/placement#out-of-memory-jax-live-arrays-and-bytes-on-each-device: out of memory, oom, resource exhausted, memory leak, memory usage
book/placement#does-jax-take-all-gpus: preallocate, preallocation, gpu memory preallocation
book/measuring#the-roofline-arithmetic-or-memory: memory bound, compute bound, bandwidth bound
book/measuring#five-benchmarks-that-mislead: benchmark is wrong, too fast to be true, page fault
book/measuring#reading-compiled-hlo-as-text: read hlo, compiled text
book/measuring#the-profiler-jax-profiler-trace: profiler, tensorboard profile, which operation is slow
book/measuring#flops-of-a-transformer-by-formula: flops of a transformer, 6nd
book/measuring#model-flop-utilization: mfu
book/many_devices#does-jax-use-all-devices: multi gpu, multiple gpus, several gpus
book/many_devices#four-layouts-of-one-model: data parallel, data parallelism, ddp, distributed training
book/many_devices#tensor-parallelism-columns-then-rows: model parallel, model parallelism
book/many_hosts#one-script-many-processes-jax-distributed-initialize: multi host, multihost, several machines, multi node, multinode, slurm
book/many_hosts#global-arrays-from-local-parts: non-addressable devices, spans non-addressable
book/many_hosts#logging-from-process-0-only: rank 0, log once, print once
book/many_hosts#grain-tf-data-pytorch-the-same-with-a-loader: tf data, torch dataloader, pytorch dataloader
book/many_hosts#checkpoints-restart-on-another-number-of-devices: elastic, resume with fewer gpus, preempted
book/many_hosts#a-process-that-leaves-out-a-collective: training hangs, hang, hangs, deadlock, stuck
book/many_hosts#a-process-that-dies: worker died, worker dies, heartbeat timeout
book/pallas#when-not-to-write-a-kernel: custom kernel, write a kernel
book/pallas#legal-blocks-and-operations-lower-for-a-tpu: unimplemented primitive, divisible by 8 and 128, compile for a tpu
book/pallas#ragged-shapes-what-hangs-over-the-edge: kernel nan, mask a block
book/pallas#order-and-races-interpretparams: race condition, data race, megacore
book/pallas#gradients-custom-vjp: gradient of a kernel
book/pallas#on-a-tpu-on-a-gpu-interpret-false: triton, mosaic
book/faq#from-pytorch: pytorch, torch, coming from pytorch
book/faq#why-is-the-first-call-slow: first call slow, slow first call, slow start
book/faq#why-is-the-gradient-nan-where-the-result-is-fine: gradient nan, nan gradient, gradient is nan
book/faq#what-else-is-there-and-when-should-i-take-it: haiku, alternatives
"""


def phrases(text: str = ASKED) -> list[tuple[str, str]]:
    """Each phrase with its section.

    >>> phrases("book/a#b: freeze, out of memory")
    [('freeze', 'book/a#b'), ('out of memory', 'book/a#b')]
    """
    lines = [line.partition(": ") for line in text.strip().splitlines()]
    return [(phrase.strip(), place) for place, _, listed in lines for phrase in listed.split(",")]
