"""What stays in a slimmed trace: words that PyTorch, Kineto and the vendors write into everybody's traces.

A keep-list: a key that is not here goes, a word that is not here becomes a token.
"""

from __future__ import annotations

import re

from stepcrit.ingest.dialect import CATEGORIES, OTHER_CATEGORIES

CATS = frozenset(CATEGORIES) | OTHER_CATEGORIES | {""}

HEADER_NUMBERS = frozenset(
    {
        "schemaVersion", "baseTimeNanoseconds", "record_shapes", "with_stack", "profile_memory", "with_flops",
        "with_modules", "DISABLE_CUPTI_LAZY_REINIT",
    }
)  # fmt: skip
HEADER_VERSIONS = frozenset(
    {
        "cupti_version", "cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version",
        "roctracer_version", "rocprofiler-sdk_version", "nccl_version",
    }
)  # fmt: skip
HEADER_IDENTITY = {
    "traceName": "trace name",
    "trace_id": "trace id",
    "group_trace_id": "trace id",
    "host_name": "host name",
    "hostname": "host name",
    "username": "user name",
    "tw_user": "user name",
    "tw_job": "job name",
    "tw_cluster": "job name",
    "tw_task_id": "job name",
    "mast_job_name": "job name",
    "mast_job_version": "job name",
    "mast_job_attempt": "job name",
    "mast_task_group": "job name",
    "mast_job_environment": "job name",
    "PT_PROFILER_JOB_NAME": "job name",
    "PT_PROFILER_JOB_VERSION": "job name",
    "PT_PROFILER_JOB_ATTEMPT_INDEX": "job name",
}
"""Header keys whose values name a host, a user, a job: they stay as tokens."""

HEADER_LOGS = ("WARNING", "ERROR")

DEVICE_NUMBERS = frozenset(
    {
        "id", "totalGlobalMem", "computeMajor", "computeMinor", "maxThreadsPerBlock", "maxThreadsPerMultiprocessor",
        "regsPerBlock", "regsPerMultiprocessor", "warpSize", "sharedMemPerBlock", "sharedMemPerBlockOptin",
        "sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor", "numSms", "maxComputeUnits",
        "maxWorkGroupSize", "maxClockFrequency", "maxMemAllocSize", "localMemSize",
    }
)  # fmt: skip
DEVICE_NAME = re.compile(
    r"(?:Simulated GPU|ARTEMIS|(?:NVIDIA|AMD|Intel|Tesla|GeForce|Quadro|Radeon|Instinct|Ascend|MTIA|Gaudi|Habana)\b"
    r"|(?:GB|GH|MI|RTX|GTX|[ABHKLPTV])\d{2,4}\b)[\w ().,+-]{0,60}"
)

NUMERIC_TEXT = re.compile(r"[-+]?\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?")
VERSION_TEXT = re.compile(r"\d{1,10}(?:\.\d{1,10}){0,5}|unknown|")
NUMBER_LIST = re.compile(r"[\[\](),\s\d.+-]*")

_TYPES = (  # as GCC, Clang and MSVC spell what a tensor holds, and as torch does
    r"(?:(?:un)?signed )?(?:char|(?:short|long|long long)(?: (?:unsigned )?int)?|int|__int(?:8|16|32|64))|unsigned"
    r"|(?:std::)?u?int(?:8|16|32|64)_t|float|(?:long )?double|bool|half|bfloat16"
    r"|(?:class |struct )?c10::[A-Za-z0-9_]{1,40}(?:<(?:float|double|(?:struct )?c10::Half|\d{1,3})>)?"
    r"|at::[A-Za-z0-9_]{1,30}|(?:const )?Tensor(?:List)?"
    r"|Byte|Char|Bool|Half|BFloat16|Short|Float|Int|Double|Long|ComplexFloat|ComplexDouble|UInt(?:16|32|64)"
    r"|Float(?:4|6|8)_[a-z0-9_]{1,16}|Q?U?Int(?:4x2|2x4|8|32)|Scalar(?:List)?|GenericList|OptionalTensorList|Device|Stream|Layout|ScalarType|None|"
)
TYPE_NAME = re.compile(_TYPES)
CONCRETE = re.compile(
    r"[\[\](),\s\d.eE+-]{0,200}|True|False|None|inf|-inf|nan|(?:cpu|cuda|meta|hip|xpu|mps)(?::\d{1,3})?"
)

BACKEND = re.compile(
    r"(?:(?:cpu|cuda|hip|xpu|npu|mtia|mps):)?(?:nccl|rccl|gloo|mpi|ucc|hccl|xccl|fake|undefined)(?:,(?:cpu|cuda|hip|xpu|npu|mtia|mps):(?:nccl|rccl|gloo|mpi|ucc|hccl|xccl|fake))*|undefined|custom|"
)
GROUP_NAME = re.compile(
    r"\d{1,20}|[0-9a-f]{32}_\d{1,6}|[0-9a-f]{40}_\d{1,6}|default_pg|undefined|(?:mesh_)?(?:world|dp|ddp|fsdp|hsdp|tp|sp|pp|cp|ep|etp|dp_shard|dp_replicate|dp_cp|dp_shard_cp)|"
)
COLLECTIVES = re.compile(
    r"_?(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|reduce|gather|scatter|barrier|send|recv|wait)"
    r"(?:_?(?:base|into_tensor|tensor|single|v|coalesced|into_tensor_coalesced|tensor_coalesced|oop|sparse|out_of_place|any_source))*",
    re.IGNORECASE,
)
SYNC_KIND = re.compile(r"(?:Stream|Event|Context|Unknown) Sync|Stream Wait Event|")

PROCESS_NAME = re.compile(
    r"(?:pt_)?python[\d.]*|CPU functions|CUDA functions|Ascend Hardware|CANN|Python|Overlap Analysis|Communication|"
    r"Spans|Traces|CUPTI Overhead|(?:[CDEPT]P )?(?:RANK|Rank|rank) ?\[?\d{1,6}\]?(?: - (?:GPU|CPU))?|(?:MTIA|GPU|CPU|XPU|HPU) ?\d{0,4}|"
)
PROCESS_LABEL = re.compile(r"(?:CPU|NPU)|(?:GPU|MTIA|XPU|HPU|NPU) \d{1,4}|")
TRACK_NAME = re.compile(
    r"[Ss]tream \d{1,10}(?: context| \(sync\)| Submission Queue)? ?|Device \d{1,4}|PyTorch Profiler|PACKET|DMA_REQUEST|"
)
THREAD_NAME = re.compile(r"([Tt]hread) (-?\d{1,20})(?: \((.*)\))?", re.DOTALL)
THREAD_WORD = re.compile(r"pt_\w{1,24}|python[\d.]*|ipython|CuptiActivityPr|")
TRACK_WORD = re.compile(
    r"-?\d{1,20}|Spans|Traces|PyTorch Profiler(?: \(\d{1,6}\))?|Trace PyTorch Profiler(?: \(\d{1,6}\))?"
    r"|CPU functions|CUDA functions|(?:GPU|MTIA|XPU) \d{1,4} Counters|[Ss]tream \d{1,10} ?(?:\(sync\))?"
    r"|(?:RANK|Rank|rank) ?\d{1,6}(?: - (?:GPU|CPU))?|"
)

_OPTIMIZERS = (
    "SGD|Adam|AdamW|Adamax|Adagrad|Adadelta|ASGD|LBFGS|NAdam|RAdam|RMSprop|Rprop|SparseAdam|Adafactor|Muon|"
    "ZeroRedundancyOptimizer|FusedAdam|FusedSGD|FusedLAMB|LAMB|KeyedOptimizer|CombinedOptimizer|DistributedOptimizer"
)
OPTIMIZER = re.compile(_OPTIMIZERS)
OPTIMIZER_RANGE = re.compile(r"(Optimizer\.(step|zero_grad)#)(.*)\.(step|zero_grad)", re.DOTALL)
LOADER_RANGE = re.compile(
    r"enumerate\(DataLoader\)#(?:_(?:MultiProcessing|SingleProcess)DataLoaderIter\.__next__)?"
)
TORCH_RANGE = re.compile(
    r"ProfilerStep#?\s*\d{1,12}\*?|PyTorch Profiler(?: \(\d{1,6}\))?|(?:nccl|rccl|gloo|mpi|ucc|hccl|xccl):[a-z_0-9]{1,60}"
    r"|DistributedDataParallel\.forward|DataParallel\.forward|Torch-Compiled Region: \d{1,4}(?:/\d{1,4}){0,2}"
    r"|## Call CompiledFxGraph [a-z0-9]{1,64} ##|record_param_comms|TorchDynamo Cache Lookup|Pregraph bytecode"
    r"|CompiledFunction(?:Backward)?|AOTDispatcher Runtime Wrapper Prologue|FSDP::(?:pre_forward|post_forward|pre_backward|post_backward"
    r"|all_gather|all_gather_copy_out|reduce_scatter|root_pre_forward|post_backward_hook|post_backward_reshard|[a-z_]{1,40})"
)
STEP_RANGE = re.compile(r"(ProfilerStep#?\s*\d{1,12}\s*)(.*)", re.DOTALL)
STEP_LABEL = re.compile(r"(?:update|batch) \d{1,12}|whole capture")
"""Steps that no range names, as we call them."""
TORCH_OPERATOR = re.compile(
    r"^(?:\w+::)+\w|^[A-Z]\w*Backward\d*$|^torch::autograd::|^triton_|^Memcpy |^Memset "
)
"""Operators, not ranges: a namespace, or what autograd calls a node."""

INSTANTS = frozenset({"[memory]", "[OutOfMemory]"})
METADATA = frozenset(
    {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
)

FEW_TRACKS, FIRST_PLACE = 1000, 5_000_000
"""Places in the list of tracks: below the first they are devices and streams, from the second on Kineto's own;
what lies between (up to the largest number of a process, 2**22) may be a number of the operating system."""

HEADER_LEFT_OUT = frozenset({"INFO"})
"""Header keys that profilers write for themselves."""
