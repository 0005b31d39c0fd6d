package io.weft.spark.ui;

import jakarta.servlet.http.HttpServletRequest;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.List;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils;
import scala.Function0;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.xml.Node;

/**
 * The header and footer that Spark puts around every page. The method that makes them has one
 * parameter more from Spark 4.2 on.
 */
final class PageFrame {
  private static final MethodHandle HEADER = find();

  private PageFrame() {}

  @SuppressWarnings("unchecked")
  static Seq<Node> around(HttpServletRequest request, String title, Node content, SparkUITab tab) {
    Seq<Node> nodes = CollectionConverters.asScala(List.of(content)).toSeq();
    Function0<Seq<Node>> body = () -> nodes;
    try {
      return (Seq<Node>) HEADER.invokeExact(request, title, body, tab);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("UIUtils.headerSparkPage failed", e);
    }
  }

  /** The method with this Spark's defaults for what follows the tab. */
  private static MethodHandle find() {
    MethodType type =
        MethodType.methodType(
            Seq.class,
            HttpServletRequest.class,
            String.class,
            Function0.class,
            SparkUITab.class,
            Option.class,
            boolean.class,
            boolean.class);
    MethodHandles.Lookup lookup = MethodHandles.publicLookup();
    try {
      MethodHandle header = lookup.findStatic(UIUtils.class, "headerSparkPage", type);
      return MethodHandles.insertArguments(header, 4, Option.empty(), false, false);
    } catch (NoSuchMethodException e) {
      return find(lookup, type.appendParameterTypes(boolean.class));
    } catch (IllegalAccessException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private static MethodHandle find(MethodHandles.Lookup lookup, MethodType type) {
    try {
      MethodHandle header = lookup.findStatic(UIUtils.class, "headerSparkPage", type);
      return MethodHandles.insertArguments(header, 4, Option.empty(), false, false, false);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }
}
