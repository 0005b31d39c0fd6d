/**
 * TPC-H: tables, which Spark tasks generate and write as Parquet, and queries. Start at {@code
 * TableWriter} and {@code TpchQuery}. The tables depend only on the scale. The caller that names
 * the folder of the tables deletes it.
 */
package io.weft.examples.tpch;
