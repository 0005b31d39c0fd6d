package io.weft.transfer;

import io.weft.host.ExecutorFolder;
import io.weft.memory.SettingNames;
import io.weft.peer.PathChoice;
import io.weft.peer.PeerAddress;
import io.weft.peer.TransferPath;
import io.weft.peer.TransportMode;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs how the blocks of other executors are read and why, once for each path. Thread-safe. */
final class PathLog {
  private static final Logger LOG = LoggerFactory.getLogger(PathLog.class);

  private final TransportMode mode;
  private final SettingNames names;
  private final Set<String> known = ConcurrentHashMap.newKeySet();
  private final Set<PathChoice> logged = ConcurrentHashMap.newKeySet();

  PathLog(TransportMode mode, SettingNames names) {
    this.mode = mode;
    this.names = names;
  }

  /** Logs the path to a peer once. Called by every reader; cheap after the first call. */
  void reads(PeerAddress peer, boolean inPlace) {
    if (known.add(peer.executorId() + "-" + peer.incarnation())) {
      PathChoice choice = choice(peer, inPlace);
      if (logged.add(choice)) {
        LOG.info("Blocks of {} and similar peers are read by {}", peer, choice);
      }
    }
  }

  PathChoice choice(PeerAddress peer, boolean inPlace) {
    if (mode == TransportMode.TCP) {
      return new PathChoice(TransferPath.TCP, names.of("mode") + " is tcp");
    }
    if (inPlace) {
      return new PathChoice(
          TransferPath.SHM, "it runs on this kernel, and its folder is visible here");
    }
    return new PathChoice(
        TransferPath.TCP,
        ExecutorFolder.currentBootId().equals(peer.bootId())
            ? "it runs on this kernel, but its folder is not visible here"
            : "it runs on another kernel");
  }
}
