/**
 * Tables of benchmarks: a folder of Parquet for each set of tables, written once and then reused.
 * Start at {@code TableSet} and {@code TableWriter}. The caller that names a folder deletes it.
 */
package io.weft.examples.tables;
