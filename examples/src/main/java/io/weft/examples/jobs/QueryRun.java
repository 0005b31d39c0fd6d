package io.weft.examples.jobs;

import java.io.Serializable;
import java.util.List;

/**
 * A query's result and cost.
 *
 * @param rows in the order in which they came, each as text that keeps every digit
 */
public record QueryRun(List<String> rows, JobCost cost) implements Serializable {}
