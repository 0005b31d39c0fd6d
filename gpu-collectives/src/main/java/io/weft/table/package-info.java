/**
 * Tables on a GPU: columns of Spark's flat types and of tensors in one run of device memory, their
 * layout, and kernels that partition them and put them together.
 *
 * <p>A {@link io.weft.table.TableLayout} says where everything of a table lies within its run, from
 * its columns, rows and bytes of strings alone, so host and device, sender and receiver agree on
 * it; it travels as a few bytes. A run is written and read as one piece. Whoever has a {@link
 * io.weft.table.DeviceTable} closes it; work on the device keeps the memory meanwhile.
 */
package io.weft.table;
