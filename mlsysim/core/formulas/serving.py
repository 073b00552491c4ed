"""Serving a language model: prefill, decode, and requests that wait for each other.

A fixed number of clients each send a request, wait for the answer and send the next one, so every
arrival is the end of another request. All prompts have one length, and all outputs another.
Arrivals therefore spread out: if one prompt is prefilled after another, its request also ends
later, and the next request finds the prefill free. Requests queue only at the start, when all
clients send at once, and if they end together because they were prefilled together. Otherwise, a
request waits only until a busy engine admits it.
"""

from mlsysim.core.formula import formula
from mlsysim.core.numeric import Value, floor, maximum, minimum

__all__ = [
    "admission_wait",
    "arrivals_together",
    "burst_prefill_time",
    "continuous_batching_rate",
    "decode_flops",
    "gathering_steps",
    "interference_time",
    "mean_context",
    "mean_over_waves",
    "passes_per_prompt",
    "place_wait",
    "pool_first_token_time",
    "pool_request_rate",
    "pool_sequences",
    "prefill_flops",
    "prompts_per_pass",
    "request_time",
    "shared_pass_time",
]


@formula
def admission_wait(decode_step: Value, sequences: Value, steps: Value, output_len: Value) -> Value:
    r"""Time from a request's arrival until the engine admits it to a pass.

    An engine admits requests between passes and launches passes ahead of time, so a request waits
    for the rest of the running step and for steps already launched. A request sees the load of the
    other $b - 1$ requests, which is $1 - 1/b$ of the total; a single request does not wait.
    Requests without decode steps do not wait here, because their queue consists of prefills.

    $$ t = \min(q,\, \max(o - 1,\, 0))\left(1 - \frac{1}{b}\right)t_d $$

    Parameters
    ----------
    decode_step : [s]
        $t_d$, time of a decode step.
    sequences : [1]
        $b$, sequences in flight.
    steps : [1]
        $q$, decode steps that pass before a busy engine admits a request.
    output_len : [token]
        $o$, tokens generated per request.

    Returns
    -------
    time : [s]
        $t$, wait before the prefill.

    References
    ----------
    @yu2022, section 3.1; @reiser1980
    """
    return minimum(steps, maximum(output_len - 1, 0)) * (1 - 1 / sequences) * decode_step


@formula
def arrivals_together(sequences: Value, output_len: Value, arrivals: Value, steps: Value) -> Value:
    r"""Requests that are admitted together once the first wave is over.

    In each decode step, some of the sequences generate their last token, and the same number of new
    requests follow. There are more if clients send requests in groups, or if the engine admits
    requests only every few steps.

    $$ g = \min\left(b,\; \max\left(g_0,\; \frac{a\,b}{\max(o - 1,\, 1)}\right)\right) $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences in decode at once.
    output_len : [token]
        $o$, tokens generated per request.
    arrivals : [1]
        $g_0$, requests of a group.
    steps : [1]
        $a$, decode steps from one admission to the next.

    Returns
    -------
    requests : [1]
        $g$, requests.

    References
    ----------
    Counting: each sequence takes one decode step for each token after the first, which the prefill
    yields, and then ends.
    """
    ended = steps * sequences / maximum(output_len - 1, 1)
    return minimum(sequences, maximum(arrivals, ended))


@formula
def burst_prefill_time(prefill: Value, arrivals: Value, prompts: Value) -> Value:
    r"""Mean time to prefill the prompts of requests that arrive together.

    Each pass takes $n$ prompts, which get their first tokens together.

    $$ t = \frac{g + n}{2}\,t_p $$

    Parameters
    ----------
    prefill : [s]
        $t_p$, prefill of one prompt.
    arrivals : [1]
        $g$, requests that arrive together.
    prompts : [1]
        $n$, prompts of one pass.

    Returns
    -------
    time : [s]
        $t$, mean time to the first token.

    References
    ----------
    Counting: the i-th of g / n passes ends at i n prefills, whose mean is as above.
    """
    return (arrivals + prompts) / 2 * prefill


@formula
def continuous_batching_rate(
    sequences: Value, output_len: Value, decode_step: Value, prefill: Value
) -> Value:
    r"""Requests per second if the next request starts as soon as a sequence ends.

    Every prefill delays all decodes. While one request is served, each of the $b$ places takes one
    new prompt, and together they cost as much as the prefill of a batch. The prefill yields the
    first token, decode steps yield the others.

    $$ X = \frac{b}{\max(o - 1,\, 0)\,t_d + t_p} $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences in flight.
    output_len : [token]
        $o$, tokens generated per request.
    decode_step : [s]
        $t_d$, time of a decode step.
    prefill : [s]
        $t_p$, time to prefill $b$ prompts, and the wait for admission.

    Returns
    -------
    rate : [1/s]
        $X$, requests per second.

    References
    ----------
    Little's law, b = X times the time in the engine, with all places always taken; the schedule is
    that of @yu2022
    """
    return sequences / (maximum(output_len - 1, 0) * decode_step + prefill)


@formula
def decode_flops(sequences: Value, matrix: Value, score: Value, logit: Value) -> Value:
    r"""Operations of one decode step: one new token for each sequence.

    $$ F_d = b\,(f_w + f_a + f_v) $$

    Parameters
    ----------
    sequences : [1]
        $b$, sequences.
    matrix : [flop]
        $f_w$, operations per token in weight matrices.
    score : [flop]
        $f_a$, operations per token in attention scores and values, over the whole context.
    logit : [flop]
        $f_v$, operations per token in the output projection.

    Returns
    -------
    flops : [flop]
        $F_d$, operations of the step.

    References
    ----------
    @pope2022
    """
    return sequences * (matrix + score + logit)


@formula
def gathering_steps(poll: Value, hold: Value, sequences: Value, output_len: Value) -> Value:
    r"""Decode steps that requests wait on average in an engine that gathers them.

    An engine that polls its queue every few steps finds each request after half of these on
    average. One that holds the first request back admits those that follow sooner: while $h$ steps
    pass, $\lambda h$ more requests arrive, which wait for half of these steps.

    $$ q = \frac{\max(p, 1) - 1}{2} + h\,\frac{1 + \lambda h/2}{1 + \lambda h},
       \qquad \lambda = \frac{b}{\max(o - 1,\, 1)} $$

    Parameters
    ----------
    poll : [1]
        $p$, decode steps from one poll of the queue to the next.
    hold : [1]
        $h$, decode steps for which the first request is held back.
    sequences : [1]
        $b$, sequences in flight.
    output_len : [token]
        $o$, tokens generated per request.

    Returns
    -------
    steps : [1]
        $q$, steps.

    References
    ----------
    Counting. @sglang_arguments, ``--scheduler-recv-interval``; @tensorrt_llm_reference,
    ``batch_wait_timeout_iters``
    """
    company = hold * sequences / maximum(output_len - 1, 1)
    return (maximum(poll, 1) - 1) / 2 + hold * (1 + company / 2) / (1 + company)


@formula
def interference_time(
    prefill: Value, sequences: Value, read: Value, output_len: Value, waited: Value
) -> Value:
    r"""Part of the time between two decode steps in which other requests' prompts are prefilled.

    While a request is served, each of the $b$ places takes one prompt. Those prefilled with the
    request's own are part of its time to first token; the others are prefilled between the
    decode steps for which it waits, and between its own tokens. Each prompt is thus counted once,
    and requests in flight equal rate times latency.

    $$ t = \frac{b\,t_p - t_r}{\max(o - 1,\, 1) + q} $$

    Parameters
    ----------
    prefill : [s]
        $t_p$, prefill of one prompt.
    sequences : [1]
        $b$, sequences in flight.
    read : [s]
        $t_r$, mean time until a request's own prompt is prefilled.
    output_len : [token]
        $o$, tokens generated per request.
    waited : [1]
        $q$, decode steps of others that pass before a request is admitted.

    Returns
    -------
    time : [s]
        $t$, time per decode step.

    References
    ----------
    @agrawal2024, section 3; @little1961
    """
    return (sequences * prefill - read) / (maximum(output_len - 1, 1) + waited)


@formula
def mean_context(seq_len: Value, output_len: Value) -> Value:
    r"""Tokens that a sequence holds on average while it is generated.

    $$ \bar T = s + \frac{o}{2} $$

    Parameters
    ----------
    seq_len : [token]
        $s$, tokens of the prompt.
    output_len : [token]
        $o$, tokens generated.

    Returns
    -------
    tokens : [token]
        $\bar T$, mean tokens of the sequence.

    References
    ----------
    Counting: the context grows by one token a step.
    """
    return seq_len + output_len / 2


@formula
def mean_over_waves(first: Value, later: Value, waves: Value) -> Value:
    r"""Mean over a run in which each client sends several requests, one after the other.

    $$ t = \frac{t_1}{w} + \left(1 - \frac{1}{w}\right)t_2 $$

    Parameters
    ----------
    first : [s]
        $t_1$, mean of the first wave, in which all requests arrive at once.
    later : [s]
        $t_2$, mean of later requests, which arrive as others end.
    waves : [1]
        $w$, requests of each client; infinite if the start does not matter.

    Returns
    -------
    time : [s]
        $t$, mean of all requests.

    References
    ----------
    Counting.
    """
    return first / waves + (1 - 1 / waves) * later


@formula
def passes_per_prompt(pass_tokens: Value, seq_len: Value, prompts: Value, ranks: Value) -> Value:
    r"""Passes per prompt, if several prompts are prefilled at once.

    Each rank prefills a different prompt, and all ranks work in the same pass. A prompt that is
    longer than a pass takes several of them, on one rank.

    $$ p = \max\left(\frac{1}{n},\; \max\left(\frac{1}{n}, \frac{1}{R}\right)\frac{s}{C}\right) $$

    Parameters
    ----------
    pass_tokens : [token]
        $C$, most tokens of one rank in one pass.
    seq_len : [token]
        $s$, tokens of a prompt.
    prompts : [1]
        $n$, prompts that are prefilled at once.
    ranks : [1]
        $R$, ranks that prefill different prompts.

    Returns
    -------
    passes : [1]
        $p$, passes per prompt.

    References
    ----------
    Counting; prompts in chunks as in @agrawal2024, section 4.2
    """
    return maximum(1 / prompts, maximum(1 / prompts, 1 / ranks) * seq_len / pass_tokens)


@formula
def place_wait(sequences: Value, running: Value, stay: Value, waves: Value) -> Value:
    r"""Mean time that a request waits for memory, if not all requests in flight fit at once.

    By Little's law, waiting requests wait until the same number of running requests end. In the
    first wave, the first requests do not wait, and the mean is half as long.

    $$ t = \left(1 - \frac{1}{2w}\right)\frac{c - b}{b}\,t_s $$

    Parameters
    ----------
    sequences : [1]
        $c$, requests in flight.
    running : [1]
        $b$, requests with keys and values that fit.
    stay : [s]
        $t_s$, time that a running request takes.
    waves : [1]
        $w$, requests of each client.

    Returns
    -------
    time : [s]
        $t$, wait before the prefill.

    References
    ----------
    @little1961
    """
    return (1 - 1 / (2 * waves)) * (sequences - running) / running * stay


@formula
def pool_first_token_time(requests: Value, rate: Value, decodes: Value, step: Value) -> Value:
    r"""Time from a request to its first token if a separate pool runs decode.

    By Little's law, a request is in the server for $c/X$ on average; the part after the first token
    is decode.

    $$ t = \frac{c}{X} - n\,t_i $$

    Parameters
    ----------
    requests : [1]
        $c$, requests in flight.
    rate : [1/s]
        $X$, requests per second.
    decodes : [1]
        $n$, tokens of a request after the first.
    step : [s]
        $t_i$, time between two of them.

    Returns
    -------
    time : [s]
        $t$, time to first token.

    References
    ----------
    @little1961
    """
    return requests / rate - decodes * step


@formula
def pool_request_rate(
    most: Value, requests: Value, before: Value, decodes: Value, step: Value
) -> Value:
    r"""Requests per second of two pools in series, if the first may be the bottleneck.

    $$ X = \min\left(X_p,\; \frac{c}{t_b + n\,t_i}\right) $$

    Parameters
    ----------
    most : [1/s]
        $X_p$, most requests per second of the prefill pool.
    requests : [1]
        $c$, requests in flight.
    before : [s]
        $t_b$, time to first token of a request that does not wait.
    decodes : [1]
        $n$, tokens of a request after the first.
    step : [s]
        $t_i$, time between two of them.

    Returns
    -------
    rate : [1/s]
        $X$, requests per second.

    References
    ----------
    Asymptotic bounds of closed networks of queues: @denning1978
    """
    return minimum(most, requests / (before + decodes * step))


@formula
def pool_sequences(rate: Value, decodes: Value, step: Value, workers: Value) -> Value:
    r"""Average number of sequences on a worker of a decode pool.

    $$ b = \frac{X\,n\,t_i}{w} $$

    Parameters
    ----------
    rate : [1/s]
        $X$, requests per second.
    decodes : [1]
        $n$, tokens of a request after the first.
    step : [s]
        $t_i$, time between two of them.
    workers : [1]
        $w$, workers of the pool.

    Returns
    -------
    sequences : [1]
        $b$, sequences of a worker.

    References
    ----------
    @little1961
    """
    return rate * decodes * step / workers


@formula
def prefill_flops(
    tokens: Value, sequences: Value, matrix: Value, score: Value, logit: Value
) -> Value:
    r"""Operations of a prefill; only each prompt's last token needs logits.

    $$ F_p = D\,(f_w + f_a) + b\,f_v $$

    Parameters
    ----------
    tokens : [token]
        $D$, prompt tokens of all sequences.
    sequences : [1]
        $b$, sequences.
    matrix : [flop]
        $f_w$, operations per token in weight matrices.
    score : [flop]
        $f_a$, operations per token in attention scores and values.
    logit : [flop]
        $f_v$, operations per token in the output projection.

    Returns
    -------
    flops : [flop]
        $F_p$, operations of the prefill.

    References
    ----------
    @pope2022
    """
    return tokens * (matrix + score) + sequences * logit


@formula
def prompts_per_pass(pass_tokens: Value, seq_len: Value, sequences: Value, ranks: Value) -> Value:
    r"""Prompts that one pass of the engine takes if several wait.

    All ranks together take whole prompts, and each rank at least a part of one.

    $$ n = \min\left(b,\; \max\left(R,\; \left\lfloor\frac{R\,C}{s}\right\rfloor\right)\right) $$

    Parameters
    ----------
    pass_tokens : [token]
        $C$, most tokens of one rank in one pass.
    seq_len : [token]
        $s$, tokens of a prompt.
    sequences : [1]
        $b$, most sequences.
    ranks : [1]
        $R$, ranks that prefill different prompts.

    Returns
    -------
    prompts : [1]
        $n$, prompts.

    References
    ----------
    @agrawal2024, section 4.2
    """
    return minimum(sequences, maximum(ranks, floor(ranks * pass_tokens / seq_len)))


@formula
def request_time(ttft: Value, itl: Value, output_len: Value) -> Value:
    r"""Time from a request to the last token of its answer.

    $$ t = t_f + \max(o - 1,\, 0)\,t_i $$

    Parameters
    ----------
    ttft : [s]
        $t_f$, time to the first token.
    itl : [s]
        $t_i$, time between tokens.
    output_len : [token]
        $o$, tokens generated.

    Returns
    -------
    time : [s]
        $t$, latency of the request.

    References
    ----------
    Counting: the prefill yields the first token.
    """
    return ttft + maximum(output_len - 1, 0) * itl


@formula
def shared_pass_time(shared: Value, passes: Value, steps: Value) -> Value:
    r"""Time saved when chunks of prompts and decode steps share passes.

    Weights are then read once for both, and kernels are launched once. The number of shared passes
    is the smaller of the two counts.

    $$ t = \min(n_p, n_d)\,t_w $$

    Parameters
    ----------
    shared : [s]
        $t_w$, time saved if a decode step joins a prefill.
    passes : [1]
        $n_p$, prefill passes while each request is served once.
    steps : [1]
        $n_d$, decode steps in that time.

    Returns
    -------
    time : [s]
        $t$, time saved.

    References
    ----------
    @agrawal2024, section 4.2
    """
    return minimum(passes, steps) * shared
