# %% start
get_ipython().run_cell_magic("bash", "", "true")  # noqa: F821

# %% after
get_ipython().run_cell_magic("bash", "", "echo from bash")  # noqa: F821
