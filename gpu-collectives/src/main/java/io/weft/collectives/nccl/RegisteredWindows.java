package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.device.Deadline;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The windows of one of NCCL's communicators. Confined to the engine's thread. */
final class RegisteredWindows {
  private static final Logger LOG = LoggerFactory.getLogger(RegisteredWindows.class);

  private final Map<DeviceWindow, Long> windows = new HashMap<>();

  /** Registers a window together with the other ranks. */
  void register(NcclComm comm, DeviceWindow window, Deadline deadline, Runnable watch) {
    long handle =
        comm.register(window.memory().address(), window.memory().bytes(), deadline, watch);
    if (handle == 0) {
      window.unused();
    }
    windows.put(window, handle);
  }

  /** Ends a window if it still exists. */
  void deregister(NcclComm comm, DeviceWindow window) {
    Long handle = windows.remove(window);
    if (handle != null && handle != 0) {
      comm.deregister(handle);
    }
  }

  /** Ends all windows before a communicator that is well. */
  void end(NcclComm comm) {
    try {
      List.copyOf(windows.keySet()).forEach(window -> deregister(comm, window));
    } catch (CollectiveException e) {
      LOG.warn("A window failed to end, so NCCL is aborted", e);
      comm.abort();
    }
  }
}
