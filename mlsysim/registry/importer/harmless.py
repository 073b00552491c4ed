"""Keys of known kinds that no field is read from: which of them change no width and no count."""

from __future__ import annotations

import re

__all__ = ["HARMLESS", "SIZE"]

_EXACT = (
    # The file, and the classes of the library
    "model_type|architectures|auto_map|dtype|torch_dtype|transformers_version|torchscript|_.*"
    "|id2label|label2id|problem_type|prefix|pruned_heads|quantization_config|finetuning_task"
    "|task_specific_params|tf_legacy_loss|use_bfloat16|use_cache|return_dict(_in_generate)?"
    "|remove_invalid_values|tokenizer_class|is_decoder|gradient_checkpointing|name_or_path"
    # Parts with their own configuration
    "|(vision|audio|text|llm|language|thinker|projector|talker|speech)_config"
    # Generation
    "|.*token(_ids?|_index)?|temperature|top_[kp]|typical_p|num_beams|num_beam_groups|do_sample"
    "|num_return_sequences|repetition_penalty|length_penalty|diversity_penalty|early_stopping"
    "|(max|min)_(new_)?(length|tokens)|no_repeat_ngram_size|encoder_no_repeat_ngram_size"
    "|output_(attentions|hidden_states|scores|router_logits)|chunk_size_feed_forward"
    "|num_logits_to_keep|begin_suppress_tokens|suppress_tokens|bad_words_ids"
    # Positions
    "|rope_.*|alibi_.*|learned_pos_emb|rotary_.*|partial_rotary_factor"
    "|.*rope_interleaved?|mrope_.*|max_window_layers"
    "|initial_context_length|original_max_position_embeddings|mla_use_nope|alibi|position_.*"
    # Arithmetic without a width
    "|(hidden_)?act(ivation)?(_function|_fn)?|.*_(act|activation)|.*eps(ilon)?|.*initializer.*"
    "|.*_std|init_.*|.*dropout(_prob)?|.*_pdrop|.*softcap(ping)?|.*scal(e|es|ing|ing_factor)"
    "|.*_multiplier|.*_multipliers|logits_.*|swiglu_(limit|alpha)|scale_.*"
    "|.*_(alpha|beta)_factor|dim_model_base|embedding_fraction"
    "|activation_situ_(linear_)?beta|clip_qkv"
    "|qk_norm_type|query_pre_attn_scalar|use_bidirectional_attention|norm_type|gate_lower_bound"
    "|rms_norm|lm_head|pretraining_tp|rescale_prenorm_residual|residual_in_fp32|fused_.*"
    # Choice of experts; where there are none, their groups mean nothing
    "|scoring_func|topk_method|topk_group|n_group|num_expert_group|use_grouped_topk|ep_size"
    "|norm_topk_prob|moe_renormalize|.*router_.*|moe_router.*|.*aux_loss.*|seq_aux|.*_coef"
    "|.*loss.*|moe_shared_expert_overlap|use_(routing|expert)_bias|norm_.*|router_bias"
    "|moe_(normalize_expert_weights|jitter_eps|norm_min|loss_weight)|uniform_expert_assignment"
    # Steps of state-space layers
    "|time_step_.*|mamba_ssm_(cache_)?dtype|use_mamba_kernels|use_associative_scan"
    "|mamba_norm_before_gate"
    # How an engine computes the same
    "|.*_dtype|.*_kernel|.*_in_fp32|attn_(type|impl)|attn_temperature_tuning|floor_scale"
    "|classifier_.*|decoder_bias|summary_.*|sparse_pred.*|mm_tokens_per_image|use_flash_attn.*"
    # Layers for multi-token prediction beyond their number
    "|mtp_.*|index_share_for_mtp_iteration"
    # Derived from other keys, or without effect where they are not read
    "|first_k_dense_replace|moe_layer_freq|output_gate_type|qk_head_dim|head_dim"
    "|num_key_value_heads|intermediate_size|vocab_size_per_layer_input"
)
HARMLESS = re.compile(rf"(\w+\.)?({_EXACT})")
"""Whole names of keys, with or without the mapping that holds them."""
SIZE = re.compile(
    r"hidden|size|dims?(_|$)|rank|expert|moe|head|layer|gate|width|depth|pattern|block|latent|mamba"
    r"|ssm|rwkv|lru|conv|recurrent|cross|encoder|shared|window|sparse|attn|attention|codebook"
    r"|^num_|^n_|pool|stride|compress|memory"
)
"""Words in names of sizes and blocks."""
