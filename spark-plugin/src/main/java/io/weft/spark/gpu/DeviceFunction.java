package io.weft.spark.gpu;

import io.weft.shuffle.device.DeviceTable;
import java.io.Serializable;

/** A program's function on batches on a GPU. It is serialized to the tasks. */
@FunctionalInterface
public interface DeviceFunction extends Serializable {
  /**
   * Makes a table from a table. It need not wait for the device: its work is ordered behind {@link
   * DeviceTable#ready} of the batch, and the batch stays valid until {@code ready} of the result.
   *
   * @param batch read-only, as it may be a block that others read too; must not be closed
   * @param work the lane and the memory to work with
   * @return a new table with the declared columns and 0 or more rows; the caller takes ownership
   * @throws Exception which fails the task
   */
  DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception;
}
