// Without fonts: readers have some, and the site loads nothing that it does not need.
import DefaultTheme from "vitepress/theme-without-fonts";
import "./style.css";

export default DefaultTheme;
