package com.nvidia.spark.rapids.shuffle;

import scala.Option;

/** Bounce buffers of one send. */
public class SendBounceBuffers implements AutoCloseable {
  private final BounceBuffer device;
  private final Option<BounceBuffer> host;

  public SendBounceBuffers(BounceBuffer device, Option<BounceBuffer> host) {
    this.device = device;
    this.host = host;
  }

  public BounceBuffer deviceBounceBuffer() {
    return device;
  }

  public Option<BounceBuffer> hostBounceBuffer() {
    return host;
  }

  @Override
  public void close() {
    device.close();
    if (host.isDefined()) {
      host.get().close();
    }
  }
}
