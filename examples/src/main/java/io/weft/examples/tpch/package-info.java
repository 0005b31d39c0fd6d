/**
 * TPC-H: tables, which Spark tasks generate and write as Parquet, and queries. Start at {@code
 * TpchTables} and {@code TpchQuery}.
 */
package io.weft.examples.tpch;
