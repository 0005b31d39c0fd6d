/**
 * TPC-H: its tables, generated and written as Parquet, and its queries. Pure functions of the
 * scale; generation runs as Spark tasks. Whoever names the folder of the tables deletes it.
 */
package io.weft.examples.tpch;
