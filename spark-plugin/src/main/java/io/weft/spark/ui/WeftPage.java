package io.weft.spark.ui;

import io.weft.spark.compat.PageFrame;
import io.weft.spark.driver.DriverState;
import jakarta.servlet.http.HttpServletRequest;
import org.apache.spark.ui.WebUIPage;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.Unparsed;

/**
 * The only page of the tab. {@link PageFrame} renders Spark's frame, {@link StatusHtml} the
 * contents.
 */
final class WeftPage extends WebUIPage {
  private final WeftTab tab;
  private final DriverState state;

  WeftPage(WeftTab tab, DriverState state) {
    super("");
    this.tab = tab;
    this.state = state;
  }

  @Override
  public Seq<Node> render(HttpServletRequest request) {
    return PageFrame.around(request, "Weft", new Unparsed(StatusHtml.of(state)), tab);
  }
}
