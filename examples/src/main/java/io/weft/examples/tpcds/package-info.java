/**
 * TPC-DS: tables, which Spark tasks generate and write as Parquet, and queries. Start at {@code
 * TpcdsTables} and {@code TpcdsQuery}.
 */
package io.weft.examples.tpcds;
