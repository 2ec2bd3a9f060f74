"""The program that the exercise `found` asks about, as JAX 0.12.0.1 printed it on a CPU with AVX2, without its head and
metadata. It is the compiled text of

    def step(x, up, b, down):
        x = x.reshape(8, 8, 512).swapaxes(0, 1).reshape(64, 512)
        return jnp.maximum(x @ up + b, 0) @ down

for float32 arrays of (64, 512), (512, 512), (512,) and (512, 16). It is stored, since other versions
and machines fuse and name otherwise.
"""

HLO = """
%fused_computation (param_0: f32[64,512], param_1: f32[512,16]) -> f32[64,16] {
  %param_0 = f32[64,512]{1,0} parameter(0)
  %param_1 = f32[512,16]{1,0} parameter(1)
  ROOT %dot_general.0 = f32[64,16]{1,0} dot(%param_0, %param_1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%fused_computation.1 (param_0.1: f32[64,512], param_1.1: f32[512,512]) -> f32[64,512] {
  %param_0.1 = f32[64,512]{1,0} parameter(0)
  %param_1.1 = f32[512,512]{1,0} parameter(1)
  ROOT %dot_general.1 = f32[64,512]{1,0} dot(%param_0.1, %param_1.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%fused_computation.2 (param_0.3: f32[64,512], param_1.5: f32[512]) -> f32[64,512] {
  %param_0.3 = f32[64,512]{1,0} parameter(0)
  %param_1.5 = f32[512]{0} parameter(1)
  %add.1 = f32[64,512]{1,0} broadcast(%param_1.5), dimensions={1}
  %add.0 = f32[64,512]{1,0} add(%param_0.3, %add.1)
  %constant.0 = f32[] constant(0)
  %max.1 = f32[64,512]{1,0} broadcast(%constant.0), dimensions={}
  ROOT %max.0 = f32[64,512]{1,0} maximum(%add.0, %max.1)
}

%fused_computation.3 (param_0.7: f32[64,512]) -> f32[64,512] {
  %param_0.7 = f32[64,512]{1,0} parameter(0)
  %bitcast.3 = f32[8,8,512]{2,1,0} bitcast(%param_0.7)
  %transpose.0 = f32[8,8,512]{2,0,1} transpose(%bitcast.3), dimensions={1,0,2}
  %copy.1 = f32[8,8,512]{2,1,0} copy(%transpose.0)
  ROOT %bitcast.2 = f32[64,512]{1,0} bitcast(%copy.1)
}

ENTRY %main.1 (x.1: f32[64,512], up.1: f32[512,512], b.1: f32[512], down.1: f32[512,16]) -> f32[64,16] {
  %x.1 = f32[64,512]{1,0} parameter(0)
  %up.1 = f32[512,512]{1,0} parameter(1)
  %b.1 = f32[512]{0} parameter(2)
  %down.1 = f32[512,16]{1,0} parameter(3)
  %copy_bitcast_fusion = f32[64,512]{1,0} fusion(%x.1), kind=kLoop, calls=%fused_computation.3
  %ynn_fusion.1 = f32[64,512]{1,0} fusion(%copy_bitcast_fusion, %up.1), kind=kCustom, calls=%fused_computation.1
  %broadcast_maximum_fusion = f32[64,512]{1,0} fusion(%ynn_fusion.1, %b.1), kind=kLoop, calls=%fused_computation.2
  ROOT %ynn_fusion = f32[64,16]{1,0} fusion(%broadcast_maximum_fusion, %down.1), kind=kCustom, calls=%fused_computation
}
""".strip()
