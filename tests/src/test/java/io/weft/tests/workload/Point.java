package io.weft.tests.workload;

import java.io.Serializable;
import org.apache.spark.sql.types.SQLUserDefinedType;

/** A value of a user-defined type. */
@SQLUserDefinedType(udt = PointType.class)
public record Point(double x, double y, String label) implements Serializable {}
