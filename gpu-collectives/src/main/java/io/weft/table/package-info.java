/**
 * Tables on a GPU: columns of Spark's flat types and of tensors in one range of device memory,
 * their layout, and kernels that partition and concatenate them.
 *
 * <p>A {@link io.weft.table.TableLayout} computes all offsets of a table from its columns, rows and
 * string bytes alone. So host and device, or sender and receiver, agree on it, and it travels as a
 * few bytes. A table is written and read as one piece. The holder of a {@link
 * io.weft.table.DeviceTable} closes it; work on the device keeps the memory until it ends.
 */
package io.weft.table;
