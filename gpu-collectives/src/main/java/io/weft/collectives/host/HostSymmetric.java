package io.weft.collectives.host;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.symmetric.NoSymmetricRoomException;
import io.weft.collectives.symmetric.SharedBuffer;
import io.weft.collectives.symmetric.SymmetricArena;
import io.weft.collectives.symmetric.SymmetricOptions;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The symmetric buffers of a host communicator. Opens an arena for the first one. Thread-safe. */
final class HostSymmetric {
  private static final Logger LOG = LoggerFactory.getLogger(HostSymmetric.class);

  /** The causes of private buffers that this process has logged. */
  static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

  private final Communicator communicator;
  private final SymmetricOptions options;
  private SymmetricArena arena;
  private boolean closed;

  HostSymmetric(Communicator communicator, SymmetricOptions options) {
    this.communicator = communicator;
    this.options = options;
  }

  /** Allocates private memory instead, with this reason. */
  interface Fallback {
    SymmetricBuffer allocate(String reason);
  }

  SymmetricBuffer allocate(DataType type, long count, Fallback fallback) {
    Optional<String> apart = SymmetricArena.refusal(communicator.topology());
    if (apart.isPresent()) {
      return fallback("ranks on several hosts", apart.get(), fallback);
    }
    Optional<String> large = SharedBuffer.refusal(communicator.nranks(), type, count);
    if (large.isPresent()) {
      return fallback("large", large.get(), fallback);
    }
    try {
      return shared(type, count);
    } catch (NoSymmetricRoomException e) {
      // Every rank learns that a rank has no room, so all fall back.
      return fallback("no room", e.getMessage(), fallback);
    }
  }

  private SymmetricBuffer shared(DataType type, long count) {
    SymmetricArena open;
    synchronized (this) {
      if (closed) {
        throw new IllegalStateException(communicator + " is closed");
      }
      if (arena == null) {
        arena = SymmetricArena.open(communicator, options);
      }
      open = arena;
    }
    return SharedBuffer.allocate(open, type, count);
  }

  private SymmetricBuffer fallback(String cause, String reason, Fallback fallback) {
    if (LOGGED.add(cause)) {
      LOG.warn("{} gets private memory instead of symmetric buffers: {}", communicator, reason);
    }
    return fallback.allocate(reason);
  }

  /**
   * Closes all buffers.
   *
   * @param reusable whether the communicator did not fail
   */
  void close(boolean reusable) {
    SymmetricArena open;
    synchronized (this) {
      closed = true;
      open = arena;
    }
    if (open != null) {
      open.close(reusable);
    }
  }
}
