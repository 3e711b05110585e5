/**
 * @file snapmla.hpp
 * C++11 on top of snapmla.h: handles that destroy themselves, failures as exceptions. Header only.
 *
 * Every call has the C call's parameters and contract. Where exceptions are not wanted (a launch loop, a noexcept
 * function), pass `get()` to the C functions.
 */
#ifndef SNAPMLA_HPP
#define SNAPMLA_HPP

#include "snapmla.h"

#include <stdexcept>
#include <string>

namespace snapmla {

/** A failed call: its status, and the library's message. */
class Error : public std::runtime_error {
public:
  Error(snapmla_status status, const char *message)
      : std::runtime_error(std::string(snapmla_status_string(status)) + ": " + message), status_(status) {}

  snapmla_status status() const noexcept { return status_; }

private:
  snapmla_status status_;
};

/** Throws what a C call of this thread has just failed with. */
inline void check(snapmla_status status) {
  if (status != SNAPMLA_STATUS_OK) {
    throw Error(status, snapmla_last_error_message());
  }
}

/** Sole owner of a C handle. Moved from, it holds NULL. */
template <typename T, snapmla_status (*Destroy)(T *)> class Handle {
public:
  Handle() noexcept : raw_(nullptr) {}
  explicit Handle(T *raw) noexcept : raw_(raw) {}
  Handle(Handle &&other) noexcept : raw_(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      reset(other.release());
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { reset(); }

  /** The C handle, still owned here. */
  T *get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != nullptr; }

  /** Gives the C handle away. */
  T *release() noexcept {
    T *raw = raw_;
    raw_ = nullptr;
    return raw;
  }

  /** Destroys the handle and owns `raw` in its place. */
  void reset(T *raw = nullptr) noexcept {
    // Fails only for a handle that somebody else has destroyed, and then there is nothing left to do.
    (void)Destroy(raw_);
    raw_ = raw;
  }

private:
  T *raw_;
};

/** A cache in the caller's memory; see snapmla_cache_init. Made by `Context::cache`. */
using Cache = Handle<snapmla_cache, snapmla_cache_destroy>;

/** Bytes of memory that a cache needs; see snapmla_cache_size. */
inline uint64_t cache_size(const snapmla_cache_params &params) {
  uint64_t size = 0;
  check(snapmla_cache_size(&params, &size));
  return size;
}

/** Whether a backend can be opened here, and if not, why; see snapmla_backend_available. */
inline bool backend_available(snapmla_backend backend, int32_t device_ordinal = 0, std::string *reason = nullptr) {
  const snapmla_status status = snapmla_backend_available(backend, device_ordinal);
  if (status == SNAPMLA_STATUS_UNAVAILABLE) {
    if (reason != nullptr) {
      *reason = snapmla_last_error_message();
    }
    return false;
  }
  check(status);
  return true;
}

/** An opened backend; see snapmla_context_create. A default-constructed one holds nothing. */
class Context : public Handle<snapmla_context, snapmla_context_destroy> {
public:
  Context() noexcept {}

  explicit Context(const snapmla_context_params &params) {
    snapmla_context *raw = nullptr;
    check(snapmla_context_create(&params, &raw));
    reset(raw);
  }

  explicit Context(snapmla_backend backend, int32_t device_ordinal = 0)
      : Context(params_of(backend, device_ordinal)) {}

  /** Takes over a handle made in C. */
  static Context adopt(snapmla_context *raw) noexcept {
    Context context;
    context.reset(raw);
    return context;
  }

  snapmla_context_info describe() const {
    snapmla_context_info info = SNAPMLA_CONTEXT_INFO_INIT;
    check(snapmla_context_describe(get(), &info));
    return info;
  }

  /** Whether a decode of this shape can be served, and if not, why. */
  bool supports(const snapmla_support_query &query, std::string *reason = nullptr) const {
    const snapmla_status status = snapmla_supports(get(), &query);
    if (status == SNAPMLA_STATUS_UNSUPPORTED) {
      if (reason != nullptr) {
        *reason = snapmla_last_error_message();
      }
      return false;
    }
    check(status);
    return true;
  }

  Cache cache(const snapmla_cache_params &params, snapmla_stream stream = nullptr) const {
    snapmla_cache *raw = nullptr;
    check(snapmla_cache_init(get(), &params, stream, &raw));
    return Cache(raw);
  }

  uint64_t decode_workspace_size(const snapmla_decode_limits &limits) const {
    uint64_t size = 0;
    check(snapmla_decode_workspace_size(get(), &limits, &size));
    return size;
  }

  void k_append(const Cache &cache, const snapmla_k_append_params &params, snapmla_stream stream = nullptr) const {
    check(snapmla_k_append(get(), cache.get(), &params, stream));
  }

  void q_quant(const snapmla_q_quant_params &params, snapmla_stream stream = nullptr) const {
    check(snapmla_q_quant(get(), &params, stream));
  }

  void records_copy(const Cache &cache, const snapmla_records_copy_params &params,
                    snapmla_stream stream = nullptr) const {
    check(snapmla_records_copy(get(), cache.get(), &params, stream));
  }

  void decode(const Cache &cache, const snapmla_decode_params &params, snapmla_stream stream = nullptr) const {
    check(snapmla_decode(get(), cache.get(), &params, stream));
  }

  void fetch_dequant(const Cache &cache, const snapmla_fetch_params &params, snapmla_stream stream = nullptr) const {
    check(snapmla_fetch_dequant(get(), cache.get(), &params, stream));
  }

  void merge(const snapmla_merge_params &params, snapmla_stream stream = nullptr) const {
    check(snapmla_merge(get(), &params, stream));
  }

private:
  static snapmla_context_params params_of(snapmla_backend backend, int32_t device_ordinal) noexcept {
    snapmla_context_params params = SNAPMLA_CONTEXT_PARAMS_INIT;
    params.backend = backend;
    params.device_ordinal = device_ordinal;
    return params;
  }
};

} // namespace snapmla

#endif // SNAPMLA_HPP
