package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.RapidsConf;
import java.util.concurrent.Executor;
import org.apache.spark.storage.BlockManagerId;

/** Serves the tables of one executor. */
public class RapidsShuffleServer implements AutoCloseable {
  public RapidsShuffleServer(
      RapidsShuffleTransport transport,
      ServerConnection connection,
      BlockManagerId id,
      RapidsShuffleRequestHandler handler,
      Executor executor,
      Executor sends,
      RapidsConf conf) {
    throw new UnsupportedOperationException("a stub");
  }

  @Override
  public void close() {
    throw new UnsupportedOperationException("a stub");
  }
}
