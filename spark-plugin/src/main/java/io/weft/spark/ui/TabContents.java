package io.weft.spark.ui;

import java.util.function.Supplier;
import org.apache.spark.SparkConf;

/**
 * Where the Weft tab reads what it shows.
 *
 * @param overview of the application, computed when the page is requested
 * @param activity shuffles, executors and events
 * @param conf the application's settings
 */
public record TabContents(Supplier<Overview> overview, Activity activity, SparkConf conf) {}
