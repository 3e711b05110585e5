/**
 * @file paged_cache.hpp
 * What an engine of its own keeps around libsnapmla: blocks with reference counts, sequences, prefix sharing, preemption.
 * C++17.
 *
 * A block holds `page_size` tokens of every layer, one layer after another, so that one memcpy moves it. The library sees
 * that as `page_stride` = a block, `layer_stride` = a layer's part of it. Arrays made here are host memory; with the CUDA
 * backend upload them on the stream of the calls that read them, and give `copy` a device copy on that stream.
 */
#pragma once

#include "snapmla.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace engine {

/** A request's tokens: the blocks that hold them, in order. */
struct Sequence {
  std::vector<int32_t> blocks;
  int32_t length = 0;
};

class PagedCache {
public:
  using Copy = void (*)(void *to, const void *from, size_t bytes);

  /** `memory`: `bytes(...)` of the context's kind of memory, 16-byte aligned, outliving this. */
  PagedCache(const snapmla::Context &context, uint32_t page_size, uint32_t layers, int32_t blocks, void *memory, Copy copy,
             snapmla_stream stream = nullptr)
      : context_(context), params_(geometry(page_size, layers, blocks)), copy_(copy), uses_(blocks, 0) {
    params_.memory = memory;
    params_.memory_size = snapmla::cache_size(params_);
    cache_ = context.cache(params_, stream);
    for (int32_t block = blocks; block-- > 0;) {
      free_.push_back(block);
    }
  }

  static uint64_t bytes(uint32_t page_size, uint32_t layers, int32_t blocks) {
    return snapmla::cache_size(geometry(page_size, layers, blocks));
  }

  const snapmla::Cache &handle() const { return cache_; }
  size_t free_blocks() const { return free_.size(); }

  /** Room for `count` more tokens: their slots, good for every layer. Throws when blocks run out. */
  std::vector<int64_t> extend(Sequence &sequence, int32_t count) {
    const int32_t page = static_cast<int32_t>(params_.page_size);
    std::vector<int64_t> slots;
    for (int32_t position = sequence.length; position < sequence.length + count; position++) {
      if (position / page == static_cast<int32_t>(sequence.blocks.size())) {
        sequence.blocks.push_back(take());
      }
      slots.push_back(int64_t{sequence.blocks[position / page]} * page + position % page);
    }
    sequence.length += count;
    return slots;
  }

  /** A sequence with the same tokens: full blocks are shared, a partly filled last one is copied. */
  Sequence fork(const Sequence &parent, snapmla_stream stream = nullptr) {
    const int32_t page = static_cast<int32_t>(params_.page_size), partial = parent.length % page;
    Sequence child = parent;
    std::vector<int64_t> from, to;
    if (partial != 0) {
      child.blocks.back() = take();
      for (int32_t i = 0; i < partial; i++) {
        from.push_back(int64_t{parent.blocks.back()} * page + i);
        to.push_back(int64_t{child.blocks.back()} * page + i);
      }
    }
    for (int32_t i = 0; i < parent.length / page; i++) {
      uses_[parent.blocks[i]]++;
    }
    snapmla_records_copy_params params = SNAPMLA_RECORDS_COPY_PARAMS_INIT;
    params.layer = SNAPMLA_ALL_LAYERS;
    params.num_records = partial;
    params.src_slots = from.data();
    params.dst_slots = to.data();
    context_.records_copy(cache_, params, stream);
    return child;
  }

  /** Gives the blocks back; those that others share stay. */
  void drop(Sequence &sequence) {
    for (const int32_t block : sequence.blocks) {
      if (--uses_[block] == 0) {
        free_.push_back(block);
      }
    }
    sequence = Sequence{};
  }

  /** Preemption: the sequence's blocks as bytes, and the blocks given back. `length` stays. */
  std::vector<char> swap_out(Sequence &sequence) {
    std::vector<char> bytes(sequence.blocks.size() * block_bytes());
    for (size_t i = 0; i < sequence.blocks.size(); i++) {
      copy_(bytes.data() + i * block_bytes(), at(sequence.blocks[i]), block_bytes());
    }
    const int32_t length = sequence.length;
    drop(sequence);
    sequence.length = length;
    return bytes;
  }

  /** The sequence again, in whatever blocks are free now. */
  void swap_in(Sequence &sequence, const std::vector<char> &bytes) {
    for (size_t i = 0; i * block_bytes() < bytes.size(); i++) {
      sequence.blocks.push_back(take());
      copy_(at(sequence.blocks.back()), bytes.data() + i * block_bytes(), block_bytes());
    }
  }

  /** Lengths and block table of a batch, as snapmla_decode takes them. */
  struct Batch {
    std::vector<int32_t> seq_lens, block_table;
    uint32_t max_pages = 0;
  };

  static Batch batch(const std::vector<const Sequence *> &sequences) {
    Batch batch;
    for (const Sequence *sequence : sequences) {
      batch.seq_lens.push_back(sequence->length);
      batch.max_pages = std::max(batch.max_pages, static_cast<uint32_t>(sequence->blocks.size()));
    }
    batch.block_table.resize(sequences.size() * batch.max_pages);
    for (size_t row = 0; row < sequences.size(); row++) {
      const std::vector<int32_t> &blocks = sequences[row]->blocks;
      std::copy(blocks.begin(), blocks.end(), batch.block_table.begin() + row * batch.max_pages);
    }
    return batch;
  }

private:
  static snapmla_cache_params geometry(uint32_t page_size, uint32_t layers, int32_t blocks) {
    snapmla_cache_params params = SNAPMLA_CACHE_PARAMS_INIT;
    params.page_size = page_size;
    params.num_layers = layers;
    params.num_pages = blocks;
    params.layer_stride = int64_t{SNAPMLA_RECORD_BYTES} * page_size;
    params.page_stride = params.layer_stride * layers;
    return params;
  }

  size_t block_bytes() const { return static_cast<size_t>(params_.page_stride); }
  char *at(int32_t block) const { return static_cast<char *>(params_.memory) + block * params_.page_stride; }

  int32_t take() {
    if (free_.empty()) {
      throw std::runtime_error("no free block: preempt a sequence");
    }
    const int32_t block = free_.back();
    free_.pop_back();
    uses_[block] = 1;
    return block;
  }

  const snapmla::Context &context_;
  snapmla_cache_params params_;
  Copy copy_;
  snapmla::Cache cache_;
  std::vector<int32_t> uses_, free_;
};

} // namespace engine
