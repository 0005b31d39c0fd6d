package io.weft.spark.gpu;

import io.weft.table.DeviceTable;
import java.io.Serializable;

/** What a program does with a batch on a GPU. Travels to the tasks. */
@FunctionalInterface
public interface DeviceFunction extends Serializable {
  /**
   * Makes a table of a table. It need not wait for the device: what it submits comes behind {@link
   * DeviceTable#ready} of the batch, and the batch stays until {@code ready} of the result.
   *
   * @param batch read-only, as it may be a block that others read too; not to be closed
   * @param work the lane and the memory to work with
   * @return a new table with the columns that were declared, which is taken over; 0 or more rows
   * @throws Exception which fails the task
   */
  DeviceTable apply(DeviceTable batch, DeviceWork work) throws Exception;
}
