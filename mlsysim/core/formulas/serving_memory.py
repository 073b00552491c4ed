"""Memory of serving: keys and values, and the sequences that fit in addition to the weights."""

import math

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, erf, exp, floor, log, maximum, minimum, sqrt, where

__all__ = [
    "adapter_traffic",
    "block_padding",
    "cache_full_probability",
    "distinct_adapters",
    "kv_cache_size",
    "kv_per_context_rank",
    "kv_per_device",
    "largest_batch",
    "load_crossover",
    "longest_context",
    "pass_workspace",
    "prefix_hit_share",
    "reusable_share",
    "sequences_of_adapters",
    "stored_weights",
]


@formula
def adapter_traffic(
    rank: Value,
    rows: Value,
    columns: Value,
    tokens: Value,
    adapters: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Bytes that the low-rank adapters of one matrix move for a batch of tokens.

    Each adapter in use is read once. Each token's input is read and shrunk to the rank, and the
    result is expanded and added to the output of the matrix, which is read and written.

    $$ M_r = e\left(g\,r\,(m_j + n_j) + T\,(m_j + 2 r + 2 n_j)\right) $$

    Parameters
    ----------
    rank : [1]
        $r$, rank of the adapters.
    rows : [1]
        $m_j$, width of the matrix's input.
    columns : [1]
        $n_j$, width of its output.
    tokens : [token]
        $T$, tokens of the pass.
    adapters : [1]
        $g$, distinct adapters of these tokens.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    size : [byte]
        $M_r$, bytes.

    References
    ----------
    @chen2023, section 4 (the shrink and expand kernels of SGMV)
    """
    weights = adapters * rank * (rows + columns)
    return bytes_per_element * (weights + tokens * (rows + 2 * rank + 2 * columns))


@formula
def block_padding(block_size: Value) -> Value:
    r"""Mean unused tokens in the last block of a sequence's keys and values.

    Engines allocate memory in blocks. If sequences are equally likely to end anywhere in a block,
    half a block less half a token is empty on average.

    $$ w = \frac{B - 1}{2} $$

    Parameters
    ----------
    block_size : [token]
        $B$, tokens of a block.

    Returns
    -------
    tokens : [token]
        $w$, mean unused tokens.

    References
    ----------
    Counting: the mean of 0, 1, ..., B - 1; blocks as in @kwon2023, section 4.1
    """
    return (block_size - 1) / 2


@formula
def cache_full_probability(sequences: Value, room: Value, prompt: Value, whole: Value) -> Value:
    r"""Share of the time during which growing sequences have no room for another token.

    Each sequence is anywhere between its prompt and its full length with the same probability,
    independently of the others. The sum of many has a normal distribution. If all of them fit at
    full length, the cache is never full.

    Sequences that were preempted together also return together, so the transition is less steep
    than this. In simulations of answers of 1,000 tokens, after prompts of 200 and 1,000, sequences
    that need 95% of the memory on average computed 23 to 38% of their answers again, where this
    gives 0 to 11%; at 100%, 42 to 46% and not 50%; at 110%, 51 to 62% and not 99%; at 150%, 84% or
    more.

    $$ P = \begin{cases} 0 & b\,M_w \le M_0 \\ \Phi\left(\dfrac{b\,(M_p + M_w)/2 - M_0}
    {(M_w - M_p)\sqrt{b/12}}\right) & \text{else} \end{cases} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences that were admitted.
    room : [byte]
        $M_0$, memory for keys and values.
    prompt : [byte]
        $M_p$, keys and values of one sequence when it is admitted.
    whole : [byte]
        $M_w$, the same at its full length.

    Returns
    -------
    probability : [1]
        $P$, share of the time.

    References
    ----------
    Central limit theorem, for independent lengths with the variance of a uniform distribution;
    preemption and recomputation in engines: @kwon2023, section 4.5
    """
    deviation = maximum(whole - prompt, 1e-9 * whole) * sqrt(sequences / 12)
    score = (sequences * (prompt + whole) / 2 - room) / deviation
    return where(sequences * whole <= room, 0, (1 + erf(score / 1.4142135623730951)) / 2)


@formula
def distinct_adapters(adapters: Value, sequences: Value) -> Value:
    r"""Mean number of different adapters that the sequences of a batch use.

    Each sequence uses any adapter with the same probability.

    $$ g = A\left(1 - \left(1 - \frac{1}{A}\right)^b\right) $$

    Parameters
    ----------
    adapters : [1]
        $A$, adapters to choose from.
    sequences : [1]
        $b$, sequences of the batch.

    Returns
    -------
    distinct : [1]
        $g$, adapters in use.

    References
    ----------
    Counting: a sequence does not use an adapter with the probability in the inner brackets; uniform
    popularity is one of the workloads of @chen2023, section 7
    """
    return adapters * (1 - (1 - 1 / adapters) ** sequences)


@formula
def kv_cache_size(
    layers: Value,
    kv_heads: Value,
    head_dim: Value,
    tokens: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Bytes of the keys and values that attention keeps for a number of tokens.

    $$ M_{kv} = 2\,L\,k\,d_h\,T\,e $$

    Parameters
    ----------
    layers : [1]
        $L$, layers.
    kv_heads : [1]
        $k$, key and value heads.
    head_dim : [1]
        $d_h$, width of one head.
    tokens : [token]
        $T$, tokens kept, over all sequences.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    size : [byte]
        $M_{kv}$, bytes.

    References
    ----------
    Counting; the cache as in @pope2022, section 2
    """
    return 2 * layers * kv_heads * head_dim * tokens * bytes_per_element


@formula
def kv_per_context_rank(own_cache: Value, dcp_size: Value) -> Value:
    r"""Keys and values that a device keeps if ranks with the same heads divide the tokens.

    Token $j$ of a sequence is on rank $j \bmod D$, so that all ranks grow alike.

    $$ M_D = \frac{M_1}{D} $$

    Parameters
    ----------
    own_cache : [byte]
        $M_1$, keys and values of the device's heads, for all tokens.
    dcp_size : [1]
        $D$, ranks that divide the tokens.

    Returns
    -------
    size : [byte]
        $M_D$, bytes on one device.

    References
    ----------
    @vllm_context_parallel, section on decode
    """
    return own_cache / dcp_size


@formula
def kv_per_device(kv_cache: Value, tp_size: Value, kv_heads: Value) -> Value:
    r"""Keys and values that one device of a tensor-parallel group holds.

    Heads are not split, so a group larger than the number of key and value heads holds some of them
    more than once.

    $$ M_1 = \frac{M_{kv}}{\min(\mathrm{TP},\, k)} $$

    Parameters
    ----------
    kv_cache : [byte]
        $M_{kv}$, keys and values of the whole model.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    kv_heads : [1]
        $k$, key and value heads.

    Returns
    -------
    size : [byte]
        $M_1$, bytes on one device.

    References
    ----------
    @pope2022, section 3.3
    """
    return kv_cache / minimum(tp_size, kv_heads)


@formula
def largest_batch(capacity: Value, weights: Value, kv_per_sequence: Value) -> Value:
    r"""Number of sequences with keys and values that fit in addition to the weights.

    $$ b_{max} = \max\left(0,\; \left\lfloor\frac{M_0 - M_w}{M_1}\right\rfloor\right) $$

    Parameters
    ----------
    capacity : [byte]
        $M_0$, memory of a device.
    weights : [byte]
        $M_w$, weights on the device.
    kv_per_sequence : [byte]
        $M_1$, keys and values of one sequence at full length, on the device.

    Returns
    -------
    sequences : [1]
        $b_{max}$, sequences; 0 if the weights alone do not fit.

    References
    ----------
    @kwon2023, section 1
    """
    return maximum(0, floor((capacity - weights) / kv_per_sequence))


@formula
def load_crossover(latency: Value, load: Value, token: Value, pair: Value) -> Value:
    r"""Length above which loading a prefix is faster than prefilling it again.

    Loading takes a latency and a time per token. Prefill takes a time per token, and a time per
    pair of tokens in attention, so loading is faster for long prefixes even over a slow link. Both
    take the same time at the root of $\beta n^2 + (\gamma - c)\,n = \alpha$:

    $$ n = \frac{c - \gamma + \sqrt{(c - \gamma)^2 + 4\alpha\beta}}{2\beta} $$

    Parameters
    ----------
    latency : [s]
        $\alpha$, time to load a prefix of no length.
    load : [s]
        $c$, time to load one more token.
    token : [s]
        $\gamma$, time to prefill one more token, without attention.
    pair : [s]
        $\beta$, time of attention divided by the square of the length.

    Returns
    -------
    tokens : [token]
        $n$, length of the prefix; infinite if loading is never faster.

    References
    ----------
    Quadratic equation; the trade between loading and computing as in @liu2023b, section 2
    """
    slower = load - token
    apart = maximum(slower, -slower)
    both = apart + sqrt(slower * slower + 4 * latency * pair)
    # Each of the two forms of the root is exact on its own side of zero.
    soon = 2 * latency / maximum(both, 1e-12 * token)
    late = where(pair > 0, both / (2 * maximum(pair, 1e-30 * token)), math.inf)
    return where(slower <= 0, soon, late)


@formula
def longest_context(
    capacity: Value, weights: Value, kv_per_token: Value, sequences: Value
) -> Value:
    r"""Tokens that each sequence of a batch may hold before memory is full.

    $$ T_{max} = \max\left(0,\; \left\lfloor\frac{M_0 - M_w}{b\,M_2}\right\rfloor\right) $$

    Parameters
    ----------
    capacity : [byte]
        $M_0$, memory of a device.
    weights : [byte]
        $M_w$, weights on the device.
    kv_per_token : [byte]
        $M_2$, keys and values of one token, on the device.
    sequences : [1]
        $b$, sequences.

    Returns
    -------
    tokens : [token]
        $T_{max}$, tokens per sequence; 0 if the weights alone do not fit.

    References
    ----------
    @kwon2023, section 1
    """
    return maximum(0, floor((capacity - weights) / (sequences * kv_per_token)))


@formula
def pass_workspace(
    tokens: Value,
    hidden_dim: Value,
    attention_width: Value,
    ffn_width: Value,
    tp_size: Value,
    bytes_per_element: Value,
) -> Value:
    r"""Memory that an engine reserves for the activations of its largest pass.

    The residual stream and its normalized copy are on every device. Tensors inside a block are
    split. Those of attention and of the feed-forward block do not exist at the same time, and
    neither do the logits, which are computed after both are freed.

    $$ M_a = C \left(2h + \frac{\max(w_a,\, w_f)}{\mathrm{TP}}\right) e $$

    Parameters
    ----------
    tokens : [token]
        $C$, tokens of the largest pass.
    hidden_dim : [1]
        $h$, width of the residual stream.
    attention_width : [1]
        $w_a$, width of queries, keys, values and output of all heads together.
    ffn_width : [1]
        $w_f$, width of all tensors inside the feed-forward block: gate, input and product.
    tp_size : [1]
        $\mathrm{TP}$, devices that share each layer.
    bytes_per_element : [byte]
        $e$, bytes of one element.

    Returns
    -------
    size : [byte]
        $M_a$, bytes on one device.

    References
    ----------
    Counting; engines measure their largest pass before they reserve memory for keys and values:
    @tensorrt_llm_memory
    """
    split = maximum(attention_width, ffn_width) / tp_size
    return tokens * (2 * hidden_dim + split) * bytes_per_element


@formula
def prefix_hit_share(room: Value, flow: Value, think_time: Value, turns: Value) -> Value:
    r"""Share of prefixes that are still in a cache when their session continues.

    Ended requests leave their keys and values in a cache that evicts the least recently used ones.
    So every prefix stays for the same time $t$, unless its session continues before that. Users
    think for an exponentially distributed time with the mean $Z$. The last of $n$ turns is not
    continued, but the cache keeps its prefix all the same. The time $t = xZ$ is such that the
    prefixes fill the room:

    $$ h = 1 - e^{-x}, \qquad \frac{n - 1}{n}\left(1 - e^{-x}\right) + \frac{x}{n}
    = \frac{M_0}{R\,Z} $$

    In long sessions, this is the room divided by the prefixes of all users who are thinking.

    Parameters
    ----------
    room : [byte]
        $M_0$, memory that running requests leave for prefixes; 0 or less if there is none.
    flow : [byte/s]
        $R$, keys and values that ended requests leave behind.
    think_time : [s]
        $Z$, mean time from an answer to the session's next request.
    turns : [1]
        $n$, requests of a session.

    Returns
    -------
    share : [1]
        $h$, share of the prefixes that the cache still has.

    References
    ----------
    @che2002, section III; @denning1968
    """
    held = maximum(0 * room, room) / (flow * think_time)
    return 1 - exp(-_stay(held, 1 / turns))


def _stay(held: Value, ended: Value) -> Value:
    """Solve for the time that prefixes stay, in think times, by Newton's method from below."""
    x = held
    for _ in range(8):
        gone = exp(-x)
        slope = (1 - ended) * gone + ended
        x = x + (held - (1 - ended) * (1 - gone) - ended * x) / slope
    return x


@formula
def reusable_share(seq_len: Value, output_len: Value, turns: Value, turn_tokens: Value) -> Value:
    r"""Share of the prompts of a session that earlier turns have already prefilled or generated.

    The prompt of each turn repeats the whole session so far and adds new tokens. So prompts grow
    by $a + o$ per turn around their mean $s$, and all of the first prompt is new.

    $$ u = 1 - \frac{s_1 + (n - 1)\,a}{n\,s}, \qquad s_1 = s - \frac{n - 1}{2}\,(a + o) $$

    Parameters
    ----------
    seq_len : [token]
        $s$, mean tokens of a prompt over all turns.
    output_len : [token]
        $o$, tokens of an answer.
    turns : [1]
        $n$, requests of a session.
    turn_tokens : [token]
        $a$, new tokens of each prompt after the first.

    Returns
    -------
    share : [1]
        $u$, share of all prompt tokens.

    References
    ----------
    Counting; sessions whose prompts repeat what came before as in @zheng2023, section 3
    """
    first = seq_len - (turns - 1) / 2 * (turn_tokens + output_len)
    return 1 - (first + (turns - 1) * turn_tokens) / (turns * seq_len)


@formula
def sequences_of_adapters(resident: Value, adapters: Value) -> Value:
    r"""Sequences that use as many different adapters, on average, as there is memory for.

    It is the inverse of `distinct_adapters`.

    $$ b = \frac{\ln(1 - R / A)}{\ln(1 - 1 / A)} $$

    Parameters
    ----------
    resident : [1]
        $R$, adapters that memory is set aside for.
    adapters : [1]
        $A$, adapters to choose from.

    Returns
    -------
    sequences : [1]
        $b$, sequences; unlimited if all adapters are resident.

    References
    ----------
    Counting; that a batch has at most as many adapters as memory is set aside for: @sheng2023,
    section 5
    """
    left = log(maximum(1 - resident / adapters, 1e-15))
    return where(resident >= adapters, math.inf, left / log(maximum(1 - 1 / adapters, 1e-15)))


@formula
def stored_weights(
    parameters: Value,
    embeddings: Value,
    bytes_per_weight: Value,
    scale_bytes: Value,
    wide_bytes: Value,
) -> Value:
    r"""Bytes of a model's weights in their storage format.

    Checkpoints in 8 and 4 bits store the matrices of the layers in that format, with a scale for
    each block of weights. Embeddings and output projection stay in 16 bits in AWQ, GPTQ, NVFP4,
    MXFP4 and FP8 checkpoints, but not in llama.cpp files.

    $$ M_w = (N - N_e)\,(e + e_s) + N_e\,e_2 $$

    Parameters
    ----------
    parameters : [param]
        $N$, parameters of the model.
    embeddings : [param]
        $N_e$, those of the embedding and the output projection.
    bytes_per_weight : [byte]
        $e$, bytes of a weight.
    scale_bytes : [byte]
        $e_s$, bytes of scale factors per weight.
    wide_bytes : [byte]
        $e_2$, bytes of an element of the embeddings.

    Returns
    -------
    size : [byte]
        $M_w$, bytes.

    References
    ----------
    @lin2024; Llama 3.1 8B in 4 bits has 5.73 GB, @llama_awq
    """
    inner = parameters - embeddings
    return inner * (bytes_per_weight + scale_bytes) + embeddings * wide_bytes
